import { type Clock, type Logger } from "@devplat/base";
import { KEEP_ALIVE_MS } from "../cache/coalescing/keep-alive.ts";
import { FIRST_BYTE_MS } from "../cache/mirror-responses.ts";
import { AppCredential, FirstCredential, ServiceToken } from "../cache/warming/warm-credential.ts";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { LiveConfig } from "../config/live-config.ts";
import { Upstream } from "../upstream/upstream.ts";
import { WarmUpstream } from "../git/warm-upstream.ts";
import { basePathOf } from "../http/routing/target.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { InstallationCredentials } from "../identity/apps/installation-credentials.ts";
import type { UpstreamConnections } from "../upstream/upstream-connections.ts";
import { buildCache, type CacheParts } from "./cache-parts.ts";
import type { ObjectStorage } from "./object-storage.ts";

const MEGABYTE = 1024 * 1024;

export interface CacheAssemblyOptions {
  readonly live: LiveConfig;
  /** Absolute. */
  readonly storagePath: string;
  /** Undefined: no bucket is configured. */
  readonly objectStorage: (Pick<ObjectStorage, "build"> & { readonly localBytes: number }) | undefined;
  readonly repositories: CachedRepositories;
  readonly installations: InstallationCredentials;
  readonly connections: UpstreamConnections;
  /** For requests of our own. */
  readonly userAgent: string;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The cache, and the connection over which it warms itself. */
export interface CacheAssembly extends CacheParts {
  /** The caller closes it when nothing warms any more. */
  readonly warmUpstream: Upstream;
}

/** The assembly of the cache, which follows the list of cached repositories. Part of assemble.ts. */
export function assembleCache(options: CacheAssemblyOptions): CacheAssembly {
  const { live, storagePath, repositories, connections, userAgent, metrics, clock, logger } = options;
  const config = live.current;
  const warmUpstream = new Upstream({ hostUrl: config.host.url, network: connections, metrics });
  const { cache } = config;
  const parts = buildCache({
    storagePath,
    hostUrl: config.host.url,
    handsOver: config.server.accel !== undefined,
    policies: repositories,
    tipsSeconds: cache.tips_seconds,
    maxUpstreamFetches: cache.max_upstream_fetches,
    queueRules: () => ({
      silentMs: live.current.cache.queue_silent_seconds * 1000,
      queueMs: live.current.cache.queue_seconds * 1000,
    }),
    heavyBytes: () => live.current.cache.heavy_mb * MEGABYTE,
    keepAliveMs: KEEP_ALIVE_MS,
    firstByteMs: FIRST_BYTE_MS,
    fill: cache.fill,
    fillMaxBytes: cache.fill_max_mb * MEGABYTE,
    maxTotalBytes: Math.min(
      (cache.max_total_size_mb ?? Infinity) * MEGABYTE,
      options.objectStorage?.localBytes ?? Infinity,
    ),
    objectTier: options.objectStorage?.build,
    dropUnusedAfterMs: cache.drop_unused_after || Infinity,
    strictLsRefs: cache.strict_lsrefs,
    seedIntervalMs: () => live.current.cache.seed_interval,
    detectCollisions: cache.detect_sha1_collisions,
    repackIdleMs: cache.repack_idle_seconds * 1000,
    pruneAfterMs: cache.prune_unreachable_after || Infinity,
    warming: cache.enabled
      ? {
          source: new WarmUpstream(warmUpstream, basePathOf(config.host.url), userAgent),
          credential: new FirstCredential([
            new AppCredential(options.installations),
            new ServiceToken(cache.service_token),
          ]),
        }
      : undefined,
    metrics,
    logger,
    clock,
  });
  repositories.observe(
    (policy) => void parts.service.policyChanged(policy),
    // A request may have begun between the purge of the data and the change of the list, and have stored its data.
    ({ owner, name }) => {
      parts.service.purge(owner, name).catch((error: unknown) => {
        logger.error({ err: error, cache_repo: `${owner}/${name}` }, "cached data could not be removed");
      });
    },
  );
  return { ...parts, warmUpstream };
}
