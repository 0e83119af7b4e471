import { backoffMs, untilAborted, type Clock } from "@devplat/base";
import { ObjectStoreError, type ObjectStore } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { Remembered } from "./manifest-memory.ts";
import type { ManifestReader, ManifestReaderParts } from "./manifest-reader.ts";
import { EpochChanged, FenceLost, ForeignManifest, type ManifestStore } from "./manifest-store.ts";
import type { Manifest, ManifestContent } from "./manifest.ts";
import { baseOf, emptyAfter, withTombstones } from "./next-manifest.ts";
import { sealManifest, type SealedManifest } from "./sealed-manifest.ts";

/** Tries of a change that other instances make at the same time. Each round one of them succeeds. */
const MAX_TRIES = 20;
/** Wait after a lost race. Another instance needs about two requests for its turn. */
const BACKOFF = { firstMs: 10, maxMs: 500, jitter: 0.9 };

export interface BucketManifestParts extends ManifestReaderParts {
  readonly store: Pick<ObjectStore, "now">;
  readonly reader: ManifestReader;
  /** Id of this instance. */
  readonly writer: string;
  readonly clock: Clock;
}

/** A change that waits. */
interface Change {
  readonly epoch: number;
  readonly fence: number;
  readonly signal: AbortSignal | undefined;
  readonly apply: (content: ManifestContent) => ManifestContent | undefined;
  readonly result: PromiseWithResolvers<Manifest | undefined>;
  /** Whether its last application changed the content. */
  hasChanged: boolean;
}

/** {@link ManifestStore} on manifests in the bucket. */
export class BucketManifestStore implements ManifestStore {
  readonly #parts: BucketManifestParts;
  /** Changes that wait, by repository. Their writer takes all of them. */
  readonly #waiting = new Map<string, Change[]>();

  constructor(parts: BucketManifestParts) {
    this.#parts = parts;
  }

  known(id: RepositoryId): Manifest | undefined {
    return this.#parts.memory.usable(id);
  }

  async current(
    id: RepositoryId,
    { maxAgeMs = 0, signal }: { readonly maxAgeMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Manifest | undefined> {
    const { memory, reader, clock } = this.#parts;
    signal?.throwIfAborted();
    const entry = memory.get(id);
    if (entry === undefined || clock.monotonic() - entry.askedAt >= maxAgeMs)
      await untilAborted(reader.read(id), signal);
    return memory.usable(id);
  }

  async update(
    id: RepositoryId,
    {
      epoch,
      fence = 0,
      signal,
    }: { readonly epoch: number; readonly fence?: number; readonly signal?: AbortSignal },
    apply: (content: ManifestContent) => ManifestContent | undefined,
  ): Promise<Manifest | undefined> {
    signal?.throwIfAborted();
    const result = Promise.withResolvers<Manifest | undefined>();
    const change: Change = { epoch, fence, signal, apply, result, hasChanged: false };
    const waiting = this.#waiting.get(id.key);
    if (waiting === undefined) {
      this.#waiting.set(id.key, [change]);
      void this.#writeAll(id);
    } else waiting.push(change);
    return await untilAborted(result.promise, signal);
  }

  async reset(id: RepositoryId, epoch: number): Promise<number> {
    const { epochs, reader } = this.#parts;
    // From now on no manifest of the old epoch is used here, also if the bucket is away.
    await epochs.adopt(id, epoch);
    const attempts = new Set<string>();
    for (let tries = 1; ; tries++) {
      const entry = await reader.readAgain(id);
      if (entry.stored !== undefined && entry.stored.epoch >= epoch) return entry.stored.epoch;
      const { generation, fence } = baseOf(entry, epoch, this.#now());
      const content = emptyAfter(
        [entry.stored, entry.newest].filter((each) => each !== undefined),
        generation + 1,
        this.#now(),
      );
      const sealed = this.#seal(id, { ...content, generation: generation + 1, epoch, fence });
      if (await this.#put(id, entry, sealed, attempts)) return epoch;
      await this.#pause(tries);
    }
  }

  /** Writes changes of a repository until none waits. Never rejects. */
  async #writeAll(id: RepositoryId): Promise<void> {
    // The first change waits for others of the same turn.
    await Promise.resolve();
    for (;;) {
      const changes = this.#waiting.get(id.key) ?? [];
      if (changes.length === 0) break;
      this.#waiting.set(id.key, []);
      await this.#write(id, changes);
    }
    this.#waiting.delete(id.key);
  }

  /** Settles all of these changes. Never rejects. */
  async #write(id: RepositoryId, changes: readonly Change[]): Promise<void> {
    const { memory, reader, epochs } = this.#parts;
    const attempts = new Set<string>();
    let left = changes;
    try {
      let entry = memory.get(id) ?? (await reader.read(id));
      for (let tries = 1; ; tries++) {
        if (entry.hmac !== undefined && attempts.has(entry.hmac)) return settle(left, entry.stored);
        if (entry.foreign !== undefined) throw new ForeignManifest(entry.foreign);
        const base = baseOf(entry, epochs.of(id), this.#now());
        const applied = applyAll(left, base);
        left = applied.changes;
        if (applied.content === base.content && isInBucket(entry, base.epoch, left))
          return settle(left, entry.newest);
        const generation = base.generation + 1;
        const content = withTombstones(base.content, applied.content, generation, this.#now());
        let sealed: SealedManifest;
        try {
          sealed = this.#seal(id, { ...content, generation, epoch: base.epoch, fence: applied.fence });
        } catch (error) {
          if (left.length === 1) throw error;
          // One of them made it impossible. The others are written without it.
          for (const change of left) await this.#write(id, [change]);
          return;
        }
        if (await this.#put(id, entry, sealed, attempts)) return settle(left, sealed.manifest);
        await this.#pause(tries);
        entry = await reader.readAgain(id);
      }
    } catch (error) {
      const told = attempts.size > 0 ? maybeWritten(error) : error;
      for (const { result } of left) result.reject(told);
    }
  }

  /**
   * Replaces the manifest on which the entry is based.
   *
   * @param attempts gets the HMAC of a manifest that the store may have, although no response said so
   * @returns false: it may have changed, and must be read again
   * @throws ObjectStoreError
   */
  async #put(
    id: RepositoryId,
    entry: Remembered,
    { bytes, hmac, manifest }: SealedManifest,
    attempts: Set<string>,
  ): Promise<boolean> {
    const { file, memory, refusals, clock } = this.#parts;
    try {
      const version = await file.replace(id, bytes, { before: entry.version, fence: manifest.fence });
      refusals.accept(id);
      memory.setWritten(id, { version, manifest, hmac, askedAt: clock.monotonic(), bytes: bytes.length });
      return true;
    } catch (error) {
      if (!(error instanceof ObjectStoreError)) throw error;
      if (error.code === "condition_failed") return false;
      if (!error.outcomeUnknown) throw error;
      attempts.add(hmac);
      // The read shows whether it is there. If it fails too, the caller must know that the change may appear later.
      await this.#parts.reader.readAgain(id).catch(() => {
        throw error;
      });
      return false;
    }
  }

  /** Clock of the store, in whole milliseconds since the epoch. */
  #now(): number {
    return Math.max(0, Math.trunc(this.#parts.store.now()));
  }

  async #pause(tries: number): Promise<void> {
    if (tries >= MAX_TRIES) {
      throw new ObjectStoreError(
        "condition_failed",
        "Cannot write the manifest of a repository: other instances change it all the time",
        { remedy: "retry" },
      );
    }
    await this.#parts.clock.sleep(backoffMs(tries, BACKOFF));
  }

  #seal(id: RepositoryId, manifest: Omit<Manifest, "writtenAt" | "writtenBy">): SealedManifest {
    const { hostUrl, keys, writer } = this.#parts;
    const whole = { ...manifest, writtenAt: this.#now(), writtenBy: writer };
    return sealManifest(whole, { hostUrl, id }, keys);
  }
}

/**
 * Applies changes in their order. Those that fail are settled, and are not in the result. One that changes nothing is in it,
 * because it may rely on a change that is not written yet.
 */
function applyAll(
  changes: readonly Change[],
  base: { readonly content: ManifestContent; readonly epoch: number; readonly fence: number },
): { readonly content: ManifestContent; readonly fence: number; readonly changes: readonly Change[] } {
  let { content, fence } = base;
  const applied = changes.filter((change) => {
    try {
      change.signal?.throwIfAborted();
      if (change.epoch !== base.epoch) throw new EpochChanged();
      if (change.fence !== 0 && change.fence < fence) throw new FenceLost();
      const next = change.apply(content);
      change.hasChanged = next !== undefined;
      content = next ?? content;
      if (next !== undefined) fence = Math.max(fence, change.fence);
      return true;
    } catch (error) {
      change.result.reject(error);
      return false;
    }
  });
  return { content, fence, changes: applied };
}

/**
 * Whether nothing must be written for changes that leave the content as it is. The content of a new epoch is not in the bucket,
 * although nobody has changed it.
 */
function isInBucket({ stored, newest }: Remembered, epoch: number, changes: readonly Change[]): boolean {
  const isStored = stored === newest && (stored === undefined || stored.epoch === epoch);
  return isStored || !changes.some(({ hasChanged }) => hasChanged);
}

/** An earlier try may still reach the store, although the last one did not. */
function maybeWritten(error: unknown): unknown {
  if (!(error instanceof ObjectStoreError) || error.outcomeUnknown) return error;
  const { code, message, remedy } = error;
  return new ObjectStoreError(code, message, { remedy, cause: error, outcomeUnknown: true });
}

/** @param manifest that has the changes */
function settle(changes: readonly Change[], manifest: Manifest | undefined): void {
  for (const { result, hasChanged } of changes) result.resolve(hasChanged ? manifest : undefined);
}
