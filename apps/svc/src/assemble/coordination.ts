import type { Clock, Logger } from "@devplat/base";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { CacheService } from "../cache/cache-service.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { Config } from "../config/schema.ts";
import { ChangeWatcher } from "../coordination/change-watcher.ts";
import { RepositoryEpochs, type LocalData } from "../coordination/repository-epochs.ts";
import type { Store } from "../storage/store.ts";

export interface CoordinationAssemblyOptions {
  readonly config: Config;
  readonly store: Store;
  readonly epochs: RepositoryEpochs;
  readonly repositories: CachedRepositories;
  readonly cache: CacheService;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Parts by which several instances on one database work together. */
export interface Coordination {
  readonly changes: ChangeWatcher;
  /** Operations of the administration on the caches of all instances. */
  readonly maintenance: CacheMaintenance;
}

/** @param purge see LocalData */
export function assembleEpochs(
  {
    config,
    store,
    storagePath,
    logger,
  }: Pick<CoordinationAssemblyOptions, "config" | "store" | "logger"> & {
    /** Absolute. */
    readonly storagePath: string;
  },
  purge: LocalData["purge"],
): RepositoryEpochs {
  return new RepositoryEpochs({
    store: store.epochs,
    hostUrl: config.host.url,
    data: config.cache.enabled ? { storagePath, purge } : undefined,
    logger,
  });
}

export function assembleCoordination(options: CoordinationAssemblyOptions): Coordination {
  const { store, epochs, repositories, cache, clock, logger } = options;
  const changes = new ChangeWatcher({
    store: store.changes,
    // The list first: data of a repository that another instance removed is not kept for it.
    apply: {
      repositories: async () => repositories.refresh(),
      epochs: async () => epochs.compare(),
    },
    clock,
    logger,
  });
  const maintenance: CacheMaintenance = {
    stats: (owner, name) => cache.stats(owner, name),
    purge: async (owner, name) => epochs.raise(owner, name),
    warm: async (owner, name) => cache.warm(owner, name),
  };
  return { changes, maintenance };
}
