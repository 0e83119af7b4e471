/** Default capacity of a {@link BaseCache}, bytes of content. */
export const DEFAULT_BASE_CACHE_BYTES = 32 * 1024 * 1024;

/** An object's type number and content. The content is shared with the cache: read it, do not write it. */
export interface RawObject {
  /** 1 commit, 2 tree, 3 blob, 4 tag. */
  readonly type: number;
  readonly content: Buffer;
}

/** Objects met while delta chains are followed, least recently used first out, bounded in bytes. */
export class BaseCache {
  readonly #capacity: number;
  readonly #entries = new Map<number, RawObject>();
  #size = 0;

  constructor(capacityBytes: number = DEFAULT_BASE_CACHE_BYTES) {
    this.#capacity = capacityBytes;
  }

  /** Bytes held. */
  get size(): number {
    return this.#size;
  }

  get(key: number): RawObject | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    // A Map keeps the order of insertion: putting it in again makes it the newest.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  set(key: number, entry: RawObject): void {
    // One large blob must not empty the cache.
    if (entry.content.length > this.#capacity / 4) return;
    const old = this.#entries.get(key);
    if (old !== undefined) {
      this.#size -= old.content.length;
      this.#entries.delete(key);
    }
    this.#entries.set(key, entry);
    this.#size += entry.content.length;
    for (const [oldest, dropped] of this.#entries) {
      if (this.#size <= this.#capacity) break;
      this.#entries.delete(oldest);
      this.#size -= dropped.content.length;
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#size = 0;
  }
}
