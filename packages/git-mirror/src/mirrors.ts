import type { Clock } from "@devplat/base";
import { IndexWorkers } from "@devplat/git-store";
import { Urgency } from "./threads/give-way.ts";
import type { IdleDetector } from "./idle-detector.ts";
import { INDEX_THREAD } from "./threads/entries.ts";
import type { RepositoryId } from "./repository-id.ts";
import { ProofThread } from "./threads/check-thread.ts";
import { RepositoryStore } from "./mirror.ts";
import { StoreFolder } from "./storage/mirror-folder.ts";
import { StoreMaintenance } from "./maintenance.ts";

/** Repositories whose files are open at once; the longest unused are closed, which costs opening them again. */
const MAX_OPEN = 64;

/** Milliseconds after a repair in which a failure without damage is taken for that repair's own. */
const ECHO_MS = 60_000;

export interface PackStoresOptions {
  readonly storagePath: string;
  /** Names of folders below it that belong to other parts of the program. */
  readonly otherFolders: readonly string[];
  /** Address of the code host; data from another one is not served. */
  readonly hostUrl: string;
  /** Key of a repository's `config` that holds `hostUrl`. */
  readonly hostKey: string;
  readonly clock: Clock;
  readonly idle: IdleDetector;
  /** `cache.prune_unreachable_after`, in milliseconds; Infinity: never. */
  readonly pruneAfterMs: number;
  readonly detectCollisions: boolean;
  /** Told of a store whose packs could not be merged. */
  readonly maintenanceFailed: (key: string, error: unknown) => Promise<void>;
  /** Told of an index file that was damaged. */
  readonly damagedIndex: (path: string) => void;
}

/** The object stores of all cached repositories, and the threads that work for them. */
export class PackStores {
  readonly #folder: StoreFolder;
  readonly #options: PackStoresOptions;
  /** Says when a request waits for what threads do. */
  readonly urgency = new Urgency();
  readonly #workers = new IndexWorkers({
    entry: INDEX_THREAD,
    keep: 1,
    workerData: this.urgency.memory,
  });
  readonly #proofs = new ProofThread(this.urgency);
  /** Another one: a fill that somebody waits for must not wait for a consolidation. */
  readonly #maintainer = new ProofThread(this.urgency);
  readonly #maintenance: StoreMaintenance;
  readonly #mending = new Map<string, Promise<void>>();
  readonly #mendedAt = new Map<string, number>();
  readonly #suspectedAt = new Map<string, number>();
  /** Longest unused first. */
  readonly #stores = new Map<string, RepositoryStore>();

  constructor(options: PackStoresOptions) {
    this.#options = options;
    this.#folder = new StoreFolder(options.storagePath, options.otherFolders);
    this.#maintenance = new StoreMaintenance({
      idle: options.idle,
      failed: options.maintenanceFailed,
      done: () => this.#maintainer.rest(),
    });
  }

  of(id: RepositoryId): RepositoryStore {
    const store = this.#stores.get(id.key) ?? this.#make(id);
    this.#stores.delete(id.key);
    this.#stores.set(id.key, store);
    // One more is in use now, so one more may rest: the last that is not among the newest.
    const resting = this.#stores.size - MAX_OPEN - 1;
    if (resting >= 0) this.#stores.values().drop(resting).next().value?.rest();
    return store;
  }

  /** Packs of a repository that is open, and their bytes. */
  figures(id: RepositoryId): RepositoryStore["figures"] {
    return this.#stores.get(id.key)?.figures ?? { packs: 0, bytes: 0 };
  }

  /** Bytes of a repository's packs on disk, open or not, and when they last changed (milliseconds since the epoch). */
  async diskUse(id: RepositoryId): Promise<{ readonly bytes: number; readonly changedAt: number }> {
    return await this.#folder.diskUse(id);
  }

  /** From now on nothing of the repository is found; its data is removed in the background. */
  async remove(id: RepositoryId): Promise<void> {
    this.#forget(id);
    await this.#folder.remove(id);
  }

  /**
   * Takes the packs at fault out of a damaged repository, or moves it out of the way as a whole; the next fill brings what
   * is gone. Several calls at a time are one.
   */
  async mend(id: RepositoryId): Promise<void> {
    const { key } = id;
    const mending = this.#mending.get(key) ?? this.#mend(id).finally(() => this.#mending.delete(key));
    this.#mending.set(key, mending);
    await mending;
  }

  /**
   * A pack could not be taken in: that may be for what is here, which then is damaged. Reads all of it, once a minute at
   * most.
   */
  async suspect(id: RepositoryId): Promise<void> {
    const now = this.#options.clock.monotonic();
    if (now - (this.#suspectedAt.get(id.key) ?? -Infinity) < ECHO_MS) return;
    this.#suspectedAt.set(id.key, now);
    const path = this.#folder.path(id);
    for (const format of ["sha1", "sha256"] as const) {
      const view = await this.of(id).view(format);
      if (view === undefined) continue;
      view.release();
      const { damaged } = await this.#maintainer.do({ kind: "repair", path, format });
      if (damaged.length > 0) await this.mend(id);
    }
  }

  async #mend(id: RepositoryId): Promise<void> {
    const now = this.#options.clock.monotonic();
    const repaired = await this.of(id)
      .repair(this.#maintainer)
      .catch(() => undefined);
    if (repaired !== undefined) this.#mendedAt.set(id.key, now);
    // Nothing to be found: either a request that was under way during the last repair failed late, or it is not the packs.
    else if (now - (this.#mendedAt.get(id.key) ?? -Infinity) > ECHO_MS) await this.setCorrupt(id);
  }

  #make(id: RepositoryId): RepositoryStore {
    const { hostUrl, hostKey, clock, pruneAfterMs, detectCollisions } = this.#options;
    const store: RepositoryStore = new RepositoryStore({
      path: this.#folder.path(id),
      hostUrl,
      hostKey,
      workers: this.#workers,
      proofs: this.#proofs,
      detectCollisions,
      discard: () => this.#folder.remove(id),
      quarantine: () => this.setCorrupt(id),
      onDamagedIndex: this.#options.damagedIndex,
      clock,
      onFilled: () =>
        this.#maintenance.consider(id.key, {
          consolidate: () => store.consolidate({ thread: this.#maintainer, pruneAfterMs }),
        }),
    });
    return store;
  }

  /** Moves a damaged repository out of the way; the next fill makes a new one. */
  async setCorrupt(id: RepositoryId): Promise<void> {
    this.#forget(id);
    await this.#folder.setCorrupt(id);
  }

  /** Repositories that have data here. */
  async repositories(): Promise<{ owner: string; name: string }[]> {
    return await this.#folder.repositories();
  }

  async removeLeftovers(): Promise<void> {
    await this.#folder.removeLeftovers();
  }

  /** Waits for removals, repairs and consolidations that are under way. */
  async settled(): Promise<void> {
    await Promise.all([...this.#stores.values()].map(async (store) => store.settled()));
    await Promise.allSettled(this.#mending.values());
    await this.#maintenance.settled();
    await this.#folder.settled();
  }

  /** No consolidation begins any more. */
  stop(): void {
    this.#maintenance.stop();
  }

  /** Closes all files and ends the threads. */
  async close(): Promise<void> {
    this.#maintenance.stop();
    for (const store of this.#stores.values()) store.close();
    this.#stores.clear();
    await this.#workers.close();
    await this.#proofs.close();
    await this.#maintainer.close();
  }

  #forget(id: RepositoryId): void {
    this.#stores.get(id.key)?.close();
    this.#stores.delete(id.key);
    this.#suspectedAt.delete(id.key);
  }
}
