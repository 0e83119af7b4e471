import type { RepositoryId } from "../../../access/repository-id.ts";

/**
 * Epochs of repositories. DELETE, purge and disable raise the epoch of a repository, which never gets lower. Data of a lower
 * epoch is not used.
 */
export interface EpochSource {
  /** The known epoch, 0 for a repository that has never been purged. */
  of(id: RepositoryId): number;
  /** Stores an epoch that another instance has shown. A lower or equal one changes nothing. @throws if it cannot be stored */
  adopt(id: RepositoryId, atLeast: number): Promise<void>;
}

/** Epochs in the memory of this process. After a restart they are learned from manifests again. */
export class MemoryEpochs implements EpochSource {
  readonly #epochs = new Map<string, number>();

  of(id: RepositoryId): number {
    return this.#epochs.get(id.key) ?? 0;
  }

  adopt(id: RepositoryId, atLeast: number): Promise<void> {
    if (atLeast > this.of(id)) this.#epochs.set(id.key, atLeast);
    return Promise.resolve();
  }
}
