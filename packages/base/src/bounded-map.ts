import { LRUCache } from "lru-cache";

/**
 * Milliseconds that are taken off each lifetime. lru-cache keeps an entry to the end of the last millisecond. Here an entry
 * whose lifetime has passed is gone.
 */
const LAST_MOMENT_MS = 0.001;

export interface BoundedMapOptions<Key, Value> {
  /** Maximum total size: a number of entries, or of the unit that `sizeOf` counts. At least 1. */
  readonly max: number;
  /** Size of an entry: a whole number, at least 1. Default: each entry counts 1. */
  readonly sizeOf?: (value: Value, key: Key) => number;
  /** Lifetime of an entry, milliseconds. Default: entries do not expire. */
  readonly ttlMs?: number;
  /** The time in milliseconds, not negative, by which entries expire. Default: the monotonic system clock. */
  readonly now?: () => number;
  /**
   * Called after an entry was evicted or deleted, or was found to be expired. Not called for a value that `set` replaces.
   */
  readonly onRemove?: (key: Key, value: Value) => void;
}

export interface SetOptions {
  /** Lifetime of this entry, milliseconds. With 0 or less the entry is not kept. Default: `ttlMs` of the map. */
  readonly ttlMs?: number;
  /** Start of the lifetime, by the clock of the map. Default: now. */
  readonly since?: number;
}

/**
 * A map with a maximum size. When it is full, the entry whose last use is the longest ago is evicted. `get` and `set`
 * count as a use, `peek` does not: a map that is only read with `peek` evicts the entry that was set first.
 *
 * Expired entries are not returned. They take up room until they are read, evicted or purged.
 */
export class BoundedMap<Key extends {}, Value extends {}> {
  readonly #entries: LRUCache<Key, Value>;
  readonly #ttlMs: number | undefined;

  constructor(options: BoundedMapOptions<Key, Value>) {
    const { max, sizeOf = () => 1, ttlMs, now = () => performance.now(), onRemove } = options;
    this.#ttlMs = ttlMs;
    this.#entries = new LRUCache<Key, Value>({
      // Not `max`: with that it takes the memory for all entries at the start.
      maxSize: max,
      sizeCalculation: sizeOf,
      // lru-cache reads a time of 0 as no time.
      perf: { now: () => now() + 1 },
      ttlResolution: 0,
      ...(onRemove !== undefined && {
        disposeAfter: (value: Value, key: Key, reason: LRUCache.DisposeReason) => {
          if (reason !== "set") onRemove(key, value);
        },
      }),
    });
  }

  /** Number of entries, including expired ones that nobody has read. */
  get size(): number {
    return this.#entries.size;
  }

  /** Sum of the sizes of all entries. */
  get totalSize(): number {
    return this.#entries.calculatedSize;
  }

  /** The value, or undefined if there is none or it has expired. Counts as a use. */
  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  /** As {@link get}, but does not count as a use. */
  peek(key: Key): Value | undefined {
    return this.#entries.peek(key);
  }

  /** Sets or replaces a value. A value larger than the maximum is not kept, and removes the value before it. */
  set(key: Key, value: Value, { ttlMs = this.#ttlMs, since }: SetOptions = {}): void {
    if (ttlMs === undefined) this.#entries.set(key, value);
    else if (ttlMs <= 0) this.#entries.delete(key);
    else {
      this.#entries.set(key, value, {
        ttl: ttlMs - LAST_MOMENT_MS,
        start: since === undefined ? this.#entries.perf.now() : since + 1,
      });
    }
  }

  /** @returns whether there was an entry, expired or not */
  delete(key: Key): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** Deletes the entries that have expired. */
  purge(): void {
    this.#entries.purgeStale();
  }

  /** A copy of the entries that have not expired, most recently used first. */
  entries(): [Key, Value][] {
    return [...this.#entries.entries()];
  }

  /** Values that have not expired, most recently used first. Copy them before you delete any. */
  values(): IteratorObject<Value> {
    return this.#entries.values();
  }
}
