import { randomUUIDv7 } from "node:crypto";
import { hostname } from "node:os";
import { within, type Clock, type Logger } from "@devplat/base";
import { repositoryId } from "../access/repository-id.ts";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { CacheService } from "../cache/cache-service.ts";
import type { CacheMaintenance } from "../cache/policy.ts";
import type { Config } from "../config/schema.ts";
import { ChangeWatcher } from "../coordination/change-watcher.ts";
import { InstanceRegistry } from "../coordination/instance-registry.ts";
import { settingsDigests } from "../coordination/shared-settings.ts";
import { RepositoryEpochs, type LocalData } from "../coordination/repository-epochs.ts";
import type { Store } from "../storage/store.ts";
import type { Activity } from "../telemetry/activity.ts";

export interface CoordinationAssemblyOptions {
  readonly config: Config;
  readonly store: Store;
  readonly epochs: RepositoryEpochs;
  readonly repositories: CachedRepositories;
  readonly cache: CacheService;
  readonly activity: Activity;
  readonly version: string;
  /** Where this instance listens. Called when it does. */
  readonly address: () => string | undefined;
  /** Undefined: there is no bucket. */
  readonly manifestKeyId: string | undefined;
  /** Whether this instance takes requests. */
  readonly isReady: () => boolean;
  readonly clock: Clock;
  /** For the loop of the registry. */
  readonly registryClock: Clock;
  readonly logger: Logger;
}

/** Parts by which several instances on one database work together. */
export interface Coordination {
  readonly changes: ChangeWatcher;
  readonly registry: InstanceRegistry;
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
    look: async (only) => cache.look(only),
    purge: async (owner, name) => epochs.raise(owner, name),
    async isPurged(owner, name, ms) {
      const end = clock.monotonic() + ms;
      const removed = epochs.settled().then(() => true);
      if ((await within(removed, ms)) === undefined) return false;
      return await cache.isPurged(owner, name, end - clock.monotonic());
    },
    warm: async (owner, name) => cache.warm(owner, name),
  };
  const registry = new InstanceRegistry({
    store: store.instances,
    instance: {
      id: randomUUIDv7(),
      hostName: hostname(),
      version: options.version,
      manifestKeyId: options.manifestKeyId,
      settingsDigests: settingsDigests(options.config),
    },
    address: options.address,
    isReady: options.isReady,
    async figures() {
      const { figuresText } = await import("../administration/instances/instance-figures.ts");
      const stats = repositories
        .all()
        .map(({ owner, name }) => ({ key: repositoryId(owner, name).key, stats: cache.stats(owner, name) }));
      return figuresText(options.activity.snapshot(), stats, clock.now());
    },
    clock: options.registryClock,
    logger,
  });
  return { changes, registry, maintenance };
}
