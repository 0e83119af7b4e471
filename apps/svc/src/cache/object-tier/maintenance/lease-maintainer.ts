import type { Clock } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import type { Maintainer } from "./maintainer.ts";

/** Milliseconds until another instance can take the lease of one that died. */
const TTL_MS = 30_000;
/** Milliseconds after its last use after which a lease is released. */
const KEEP_MS = 10 * 60 * 1000;

/** A lease that is renewed until its release. */
export interface RenewedLease {
  readonly fence: number;
  readonly isHeld: boolean;
  release(): Promise<void>;
}

export interface LeaseMaintainerParts {
  /** Takes a lease of the common database. Undefined: another holder has it. */
  readonly hold: (name: string, ttlMs: number) => Promise<RenewedLease | undefined>;
  /** Name of the lease of a repository. */
  readonly nameOf: (id: RepositoryId) => string;
  readonly manifests: Pick<ManifestStore, "known">;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Elects one instance for each repository by leases of the common database. */
export class LeaseMaintainer implements Maintainer {
  readonly #parts: LeaseMaintainerParts;
  readonly #held = new Map<string, { readonly lease: RenewedLease; usedAt: number }>();
  readonly #turns = new Serializer();

  constructor(parts: LeaseMaintainerParts) {
    this.#parts = parts;
  }

  /** @throws SvcError `database_unavailable` */
  async mayMaintain(id: RepositoryId): Promise<number | undefined> {
    const { hold, nameOf, manifests, clock } = this.#parts;
    return await this.#turns.run(async () => {
      await this.#releaseUnused();
      const known = this.#held.get(id.key);
      // An instance without this database may have written a higher number. Writes with a lower one would be refused for ever.
      const isHighest = (known?.lease.fence ?? 0) >= (manifests.known(id)?.fence ?? 0);
      if (known?.lease.isHeld === true && isHighest) {
        known.usedAt = clock.monotonic();
        return known.lease.fence;
      }
      this.#held.delete(id.key);
      await known?.lease.release();
      const lease = await hold(nameOf(id), TTL_MS);
      if (lease !== undefined) this.#held.set(id.key, { lease, usedAt: clock.monotonic() });
      return lease?.fence;
    });
  }

  /** Releases all leases. */
  async close(): Promise<void> {
    await this.#turns.run(async () => {
      await Promise.all([...this.#held.values()].map(async ({ lease }) => lease.release()));
      this.#held.clear();
    });
  }

  async #releaseUnused(): Promise<void> {
    const now = this.#parts.clock.monotonic();
    for (const [key, { lease, usedAt }] of this.#held) {
      if (lease.isHeld && now - usedAt < KEEP_MS) continue;
      this.#held.delete(key);
      await lease.release();
    }
  }
}
