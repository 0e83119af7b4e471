import type { Clock } from "@devplat/base";
import { RefSnapshots, type RepositoryIdentity } from "./ref-snapshots.ts";
import type { RepositoryId } from "./repository-id.ts";

/** Is told when the code host showed refs of a repository. */
export interface RefObserver {
  /**
   * Called before the authorization that the refs came with counts.
   *
   * @param complete whether the response covered all refs: then absence counts too
   */
  refsShown(id: RepositoryId, identity: RepositoryIdentity, complete: boolean): Promise<void>;
}

/** The recent ref snapshots of all repositories. */
export class RefSnapshotStore {
  readonly #maxAgeMs: number;
  readonly #clock: Clock;
  readonly #snapshots = new Map<string, RefSnapshots>();
  readonly #observers: RefObserver[] = [];

  /** @param maxAgeSeconds `cache.tips_seconds` */
  constructor(maxAgeSeconds: number, clock: Clock) {
    this.#maxAgeMs = maxAgeSeconds * 1000;
    this.#clock = clock;
  }

  observe(observer: RefObserver): void {
    this.#observers.push(observer);
  }

  of({ key }: RepositoryId): RefSnapshots {
    const known = this.#snapshots.get(key);
    if (known !== undefined) return known;
    const snapshots = new RefSnapshots(this.#maxAgeMs, this.#clock);
    this.#snapshots.set(key, snapshots);
    return snapshots;
  }

  /**
   * Records the response to an `ls-refs`: see {@link RefSnapshots.record}.
   *
   * @throws ProtocolError if its lines are not refs
   */
  async record(id: RepositoryId, prefixes: readonly string[], body: Buffer | undefined): Promise<void> {
    const identity = this.of(id).record(prefixes, body);
    const complete = prefixes.length === 0 && body !== undefined;
    for (const observer of this.#observers) await observer.refsShown(id, identity, complete);
  }

  /** Forgets a repository whose data is removed. */
  forget({ key }: RepositoryId): void {
    this.#snapshots.get(key)?.clear();
    this.#snapshots.delete(key);
  }
}
