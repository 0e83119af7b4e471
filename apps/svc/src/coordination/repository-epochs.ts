import type { Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { repositoryId, type RepositoryId } from "../access/repository-id.ts";
import type { EpochStore } from "../storage/coordination-store.ts";
import { LocalEpochs } from "./local-epochs.ts";
import { repositoryKey, repositoryOfKey } from "./repository-key.ts";

/** Data of repositories in the cache folder of this instance. */
export interface LocalData {
  /** Absolute path of the folder. It exists. */
  readonly storagePath: string;
  /**
   * Removes the data of a repository. What began to be stored before is not stored after it. Resolves when nothing of it is
   * found any more.
   *
   * @param keepsTips the refs that the code host showed stay known. Default false.
   */
  purge(owner: string, name: string, options?: { readonly keepsTips?: boolean }): Promise<void>;
}

export interface RepositoryEpochsParts {
  readonly store: EpochStore;
  /** `host.url` */
  readonly hostUrl: string;
  /** Undefined: the cache is off. */
  readonly data: LocalData | undefined;
  readonly logger: Logger;
}

/**
 * Epochs of the repositories of this code host. Data in the cache folder is valid if its epoch is the one in the database.
 * Lower ones are removed, also those of a time when this instance did not run.
 */
export class RepositoryEpochs {
  readonly #parts: RepositoryEpochsParts;
  readonly #removals = new Serializer();
  #local: LocalEpochs | undefined;

  constructor(parts: RepositoryEpochsParts) {
    this.#parts = parts;
  }

  /** Epoch of the data that this instance has, and of the data that it stores now. */
  of(id: RepositoryId): number {
    return this.#local?.get(repositoryKey(this.#parts.hostUrl, id)) ?? 0;
  }

  /** Epoch in the database, also if its data is still being removed here. @throws SvcError `database_unavailable` */
  async stored(id: RepositoryId): Promise<number> {
    return await this.#parts.store.get(repositoryKey(this.#parts.hostUrl, id));
  }

  /**
   * Repositories whose data was removed once, also those that are not listed any more.
   *
   * @throws SvcError `database_unavailable`
   */
  async purged(): Promise<readonly RepositoryId[]> {
    const { store, hostUrl } = this.#parts;
    const found = [...(await store.all()).keys()].map((key) => repositoryOfKey(hostUrl, key));
    return found.filter((each) => each !== undefined).map(({ owner, name }) => repositoryId(owner, name));
  }

  /**
   * Makes all stored data of a repository invalid on every instance. This instance begins to remove its data before the
   * call resolves, and completes that in the background.
   *
   * @throws SvcError `database_unavailable`
   */
  async raise(owner: string, name: string): Promise<void> {
    const key = this.#keyOf(owner, name);
    const epoch = await this.#parts.store.raise(key);
    this.#replace(new Map([[key, epoch]])).catch((error: unknown) => {
      this.#parts.logger.error({ err: error, repo: `${owner}/${name}` }, "cached data could not be removed");
    });
  }

  /**
   * Takes over an epoch that was seen elsewhere, such as in a manifest, if it is higher. The data of lower epochs is removed
   * when it resolves. The request that saw it goes on, so it must still know the refs that the code host showed to it.
   *
   * @throws SvcError `database_unavailable`, or a system error
   */
  async adopt(id: RepositoryId, epoch: number): Promise<void> {
    if (epoch <= this.of(id)) return;
    const key = repositoryKey(this.#parts.hostUrl, id);
    await this.#replace(new Map([[key, await this.#parts.store.adopt(key, epoch)]]), { keepsTips: true });
  }

  /**
   * Compares the epochs of all repositories with the database, and removes data of lower epochs.
   *
   * @throws SvcError `database_unavailable`, or a system error
   */
  async compare(): Promise<void> {
    const { store, hostUrl, data } = this.#parts;
    if (data === undefined) return;
    const stored = await store.all();
    const local = await this.#opened(data);
    const isOurs = (key: string): boolean => repositoryOfKey(hostUrl, key) !== undefined;
    // The database was restored from a backup, or is another one: it must not count below the data that is here.
    for (const [key, epoch] of local.all()) {
      if (isOurs(key) && epoch > (stored.get(key) ?? 0)) await store.adopt(key, epoch);
    }
    await this.#replace(new Map([...stored].filter(([key, epoch]) => isOurs(key) && epoch > local.get(key))));
  }

  /** Waits for removals that are under way. */
  async settled(): Promise<void> {
    await this.#removals.settled();
  }

  /** Removes the data of these repositories, then gives what is stored from then on these epochs. */
  async #replace(
    epochs: ReadonlyMap<string, number>,
    options?: { readonly keepsTips: boolean },
  ): Promise<void> {
    const { hostUrl, data, logger } = this.#parts;
    if (data === undefined || epochs.size === 0) return;
    // Not in turn: what a purge must prevent is prevented when it is called.
    const removed = Promise.all(
      [...epochs.keys()].map(async (key) => {
        const found = repositoryOfKey(hostUrl, key);
        if (found === undefined) return;
        await data.purge(found.owner, found.name, options);
        logger.info({ repo: `${found.owner}/${found.name}` }, "removed data of a lower epoch");
      }),
    );
    await this.#removals.run(async () => {
      await removed;
      const local = await this.#opened(data);
      // A crash before this only repeats the removal.
      await local.put(new Map([...epochs].filter(([key, epoch]) => epoch > local.get(key))));
    });
  }

  async #opened(data: LocalData): Promise<LocalEpochs> {
    this.#local ??= await LocalEpochs.open(data.storagePath);
    return this.#local;
  }

  #keyOf(owner: string, name: string): string {
    return repositoryKey(this.#parts.hostUrl, repositoryId(owner, name));
  }
}
