import type { Clock, Logger } from "@devplat/base";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { CacheService } from "../cache/cache-service.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { Config } from "../config/schema.ts";
import { ChangeWatcher } from "../coordination/change-watcher.ts";
import { RepositoryEpochs } from "../coordination/repository-epochs.ts";
import type { Store } from "../storage/store.ts";

export interface CoordinationAssemblyOptions {
  readonly config: Config;
  readonly store: Store;
  /** Absolute. */
  readonly storagePath: string;
  readonly repositories: CachedRepositories;
  readonly cache: CacheService;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Parts by which several instances on one database work together. */
export interface Coordination {
  readonly epochs: RepositoryEpochs;
  readonly changes: ChangeWatcher;
  /** Operations of the administration on the caches of all instances. */
  readonly maintenance: CacheMaintenance;
}

export function assembleCoordination(options: CoordinationAssemblyOptions): Coordination {
  const { config, store, storagePath, repositories, cache, clock, logger } = options;
  const epochs = new RepositoryEpochs({
    store: store.epochs,
    hostUrl: config.host.url,
    data: config.cache.enabled
      ? { storagePath, purge: async (owner, name) => cache.purge(owner, name) }
      : undefined,
    logger,
  });
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
  return { epochs, changes, maintenance };
}
