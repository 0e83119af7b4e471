import { type Clock, type Logger } from "@devplat/base";
import { RefSnapshotStore } from "../access/ref-snapshot-store.ts";
import { GitCache } from "../cache/git-cache.ts";
import { AppCredential, FirstCredential, ServiceToken } from "../cache/warming/warm-credential.ts";
import type { CachedRepositories } from "../administration/repositories/cached-repositories.ts";
import type { Config } from "../config/schema.ts";
import { Upstream } from "../upstream/upstream.ts";
import { WarmUpstream } from "../git/warm-upstream.ts";
import { basePathOf } from "../http/routing/target.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { InstallationCredentials } from "../identity/apps/installation-credentials.ts";
import type { UpstreamConnections } from "../upstream/upstream-connections.ts";

export interface CacheAssemblyOptions {
  readonly config: Config;
  /** Absolute. */
  readonly storagePath: string;
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
export interface CacheParts {
  readonly cache: GitCache;
  readonly refs: RefSnapshotStore;
  /** To be closed when nothing warms any more. */
  readonly warmUpstream: Upstream;
}

/** The assembly of the cache, which follows the list of cached repositories. Part of assemble.ts. */
export function assembleCache(options: CacheAssemblyOptions): CacheParts {
  const { config, storagePath, repositories, connections, userAgent, metrics, clock, logger } = options;
  const warmUpstream = new Upstream({ hostUrl: config.host.url, network: connections, metrics });
  const refs = new RefSnapshotStore(config.cache.tips_seconds, clock);
  const cache = new GitCache({
    storagePath,
    hostUrl: config.host.url,
    policies: repositories,
    refs,
    maxUpstreamFetches: config.cache.max_upstream_fetches,
    queueSeconds: config.cache.queue_seconds,
    fill: config.cache.fill,
    fillMaxMb: config.cache.fill_max_mb,
    maxTotalMb: config.cache.max_total_size_mb ?? Infinity,
    dropUnusedAfterMs: config.cache.drop_unused_after || Infinity,
    detectCollisions: config.cache.detect_sha1_collisions,
    repackIdleMs: config.cache.repack_idle_seconds * 1000,
    pruneAfterMs: config.cache.prune_unreachable_after || Infinity,
    warming: config.cache.enabled
      ? {
          source: new WarmUpstream(warmUpstream, basePathOf(config.host.url), userAgent),
          credential: new FirstCredential([
            new AppCredential(options.installations),
            new ServiceToken(config.cache.service_token),
          ]),
        }
      : undefined,
    metrics,
    logger,
    clock,
  });
  repositories.observe(
    (policy) => void cache.policyChanged(policy),
    ({ owner, name }) => {
      cache.purge(owner, name).catch((error: unknown) => {
        logger.error({ err: error, cache_repo: `${owner}/${name}` }, "cached data could not be removed");
      });
    },
  );
  return { cache, refs, warmUpstream };
}
