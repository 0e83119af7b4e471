import { IndexWorkers } from "@devplat/git-store";
import type { RepositoryId } from "./repository-id.ts";
import { ProofThread } from "./proof-thread.ts";
import { RepositoryStore } from "./repository-store.ts";
import { StoreFolder } from "./store-folder.ts";

/** Repositories whose files are open at once; the longest unused are closed, which costs opening them again. */
const MAX_OPEN = 64;

/** The object stores of all cached repositories, and the threads that work for them. */
export class PackStores {
  readonly #folder: StoreFolder;
  readonly #hostUrl: string;
  readonly #workers = new IndexWorkers({ entry: new URL("index-thread.ts", import.meta.url) });
  readonly #proofs = new ProofThread();
  /** Longest unused first. */
  readonly #stores = new Map<string, RepositoryStore>();

  constructor(storagePath: string, hostUrl: string) {
    this.#folder = new StoreFolder(storagePath);
    this.#hostUrl = hostUrl;
  }

  of(id: RepositoryId): RepositoryStore {
    const store =
      this.#stores.get(id.key) ??
      new RepositoryStore({
        path: this.#folder.path(id),
        hostUrl: this.#hostUrl,
        workers: this.#workers,
        proofs: this.#proofs,
        discard: () => this.#folder.remove(id),
      });
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

  /** Waits for removals that are under way. */
  async settled(): Promise<void> {
    await this.#folder.settled();
  }

  /** Closes all files and ends the threads. */
  async close(): Promise<void> {
    for (const store of this.#stores.values()) store.close();
    this.#stores.clear();
    await this.#workers.close();
    await this.#proofs.close();
  }

  #forget(id: RepositoryId): void {
    this.#stores.get(id.key)?.close();
    this.#stores.delete(id.key);
  }
}
