import type { Clock } from "@devplat/base";
import { ObjectStoreError, type ObjectStore, type WriteCondition } from "@devplat/object-store";
import { Serializer } from "@devplat/base/serializer";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { ObjectNames } from "../object-names.ts";
import { decodeLease, encodeLease, type BucketLease } from "./bucket-lease.ts";
import type { Maintainer } from "./maintainer.ts";

/** Name of the lease, below the folder of its repository. */
const LEASE = "maintainer.json";
/** Milliseconds without a change after which the holder of a lease counts as gone, by the clock of the watcher. */
export const GONE_AFTER_MS = 30_000;
/** Milliseconds between two renewals: two of them can fail before others take the lease. */
const RENEW_AFTER_MS = 8000;
/** Milliseconds after its last use in which a lease is kept. */
const KEEP_MS = 10 * 60 * 1000;

export interface BucketMaintainerParts {
  readonly store: Pick<ObjectStore, "get" | "put">;
  readonly names: ObjectNames;
  readonly manifests: Pick<ManifestStore, "known">;
  /** Id of this instance. */
  readonly instance: string;
  readonly clock: Clock;
}

interface Held {
  readonly id: RepositoryId;
  readonly etag: string;
  readonly fence: number;
  readonly sequence: number;
  /** Monotonic time before the last renewal. */
  readonly renewedAt: number;
}

/**
 * Elects one instance for each repository by an object in the bucket, without a common database. No clocks are compared: an
 * instance takes the lease of another one that has not changed it for a while. The loser notices with its next renewal, and
 * its writes of the manifest fail, because the new holder has a higher fencing number.
 */
export class BucketMaintainer implements Maintainer {
  readonly #parts: BucketMaintainerParts;
  readonly #held = new Map<string, Held>();
  /** Monotonic time of the last use, by repository. */
  readonly #usedAt = new Map<string, number>();
  /** Leases of other instances: since when they have not changed, in monotonic time. */
  readonly #watched = new Map<string, { readonly etag: string; readonly since: number }>();
  readonly #turns = new Serializer();

  constructor(parts: BucketMaintainerParts) {
    this.#parts = parts;
  }

  /** @throws ObjectStoreError */
  async mayMaintain(id: RepositoryId): Promise<number | undefined> {
    this.#usedAt.set(id.key, this.#parts.clock.monotonic());
    return await this.#turns.run(async () => {
      const held = this.#held.get(id.key);
      return (held === undefined ? await this.#take(id) : await this.#renew(held))?.fence;
    });
  }

  /** Renews the leases of this instance that it uses, until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      await clock.sleep(RENEW_AFTER_MS, signal).catch(() => undefined);
      await this.#turns.run(async () => this.#renewAll(signal.aborted));
    }
  }

  async #renewAll(isStopping: boolean): Promise<void> {
    const now = this.#parts.clock.monotonic();
    for (const held of this.#held.values()) {
      const isUsed = now - (this.#usedAt.get(held.id.key) ?? 0) < KEEP_MS;
      try {
        if (isUsed && !isStopping) await this.#renew(held);
        else await this.#release(held);
      } catch {
        // The next round tries again. Others take the lease if that fails for too long.
      }
    }
  }

  async #renew(held: Held): Promise<Held | undefined> {
    const { clock, manifests } = this.#parts;
    const { id, etag, sequence } = held;
    // An instance that does not use this lease may have written a higher number. Writes with a lower one would be refused for ever.
    const written = manifests.known(id)?.fence ?? 0;
    const fence = written > held.fence ? written + 1 : held.fence;
    const age = clock.monotonic() - held.renewedAt;
    if (age < RENEW_AFTER_MS && fence === held.fence) return held;
    const next = await this.#write(id, { fence, sequence: sequence + 1 }, { ifMatch: etag });
    if (next !== undefined) return next;
    this.#held.delete(id.key);
    return await this.#take(id);
  }

  async #release(held: Held): Promise<void> {
    this.#held.delete(held.id.key);
    this.#usedAt.delete(held.id.key);
    const { store, names } = this.#parts;
    const { fence, sequence, etag } = held;
    const content = encodeLease({ holder: undefined, fence, sequence: sequence + 1 });
    await store.put(names.object(held.id, LEASE), content, { condition: { ifMatch: etag } });
  }

  /** Takes the lease if nobody has it, or its holder is gone. */
  async #take(id: RepositoryId): Promise<Held | undefined> {
    const { clock, manifests, instance } = this.#parts;
    const found = await this.#read(id);
    const fence = Math.max(found?.lease.fence ?? 0, manifests.known(id)?.fence ?? 0) + 1;
    const sequence = (found?.lease.sequence ?? 0) + 1;
    if (found === undefined) return await this.#write(id, { fence, sequence }, { ifAbsent: true });
    const { lease, etag } = found;
    // The response to an own write may have been lost.
    const isFree = lease.holder === undefined || lease.holder === instance;
    const now = clock.monotonic();
    const watched = this.#watched.get(id.key);
    if (!isFree && watched?.etag !== etag) {
      this.#watched.set(id.key, { etag, since: now });
      return undefined;
    }
    if (!isFree && now - (watched?.since ?? now) < GONE_AFTER_MS) return undefined;
    return await this.#write(id, { fence, sequence }, { ifMatch: etag });
  }

  async #read(id: RepositoryId): Promise<{ readonly lease: BucketLease; readonly etag: string } | undefined> {
    const { store, names } = this.#parts;
    try {
      const found = await store.get(names.object(id, LEASE), { traffic: "control" });
      if (!found.modified) return undefined;
      const bytes = Buffer.concat((await found.body.toArray()) as Buffer[]);
      return { lease: decodeLease(bytes), etag: found.etag };
    } catch (error) {
      if (error instanceof ObjectStoreError && error.code === "missing") return undefined;
      throw error;
    }
  }

  /** @returns undefined if another instance was faster */
  async #write(
    id: RepositoryId,
    { fence, sequence }: Pick<BucketLease, "fence" | "sequence">,
    condition: WriteCondition,
  ): Promise<Held | undefined> {
    const { store, names, instance, clock } = this.#parts;
    const renewedAt = clock.monotonic();
    try {
      const bytes = encodeLease({ holder: instance, fence, sequence });
      const { etag } = await store.put(names.object(id, LEASE), bytes, { condition, traffic: "control" });
      const held = { id, etag, fence, sequence, renewedAt };
      this.#held.set(id.key, held);
      this.#watched.delete(id.key);
      return held;
    } catch (error) {
      if (error instanceof ObjectStoreError && error.code === "condition_failed") return undefined;
      this.#held.delete(id.key);
      throw error;
    }
  }
}
