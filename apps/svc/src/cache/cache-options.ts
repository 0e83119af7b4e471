import type { Clock, Logger } from "@devplat/base";
import type { RefSnapshotStore } from "../access/ref-snapshot-store.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { CachePolicies } from "./policy.ts";
import type { WarmerOptions } from "./warming/warmer.ts";

/** What the cache needs, and how it is configured. */
export interface GitCacheOptions {
  /** `cache.storage_path` */
  readonly storagePath: string;
  /** `host.url`: data from another code host is never served. */
  readonly hostUrl: string;
  readonly policies: CachePolicies;
  readonly refs: RefSnapshotStore;
  /** `cache.max_upstream_fetches` */
  readonly maxUpstreamFetches: number;
  /** `cache.queue_seconds` */
  readonly queueSeconds: number;
  /** Milliseconds between signs of life for a client that waits. Default: keep-alive.ts. */
  readonly keepAliveMs?: number;
  /** `cache.fill`: what an empty store is filled with behind a request. Default `full`. */
  readonly fill?: "full" | "wants";
  /** `cache.fill_max_mb`. Default: no limit. */
  readonly fillMaxMb?: number;
  /** `cache.repack_idle_seconds`, in milliseconds. Default 0: packs are merged immediately. */
  readonly repackIdleMs?: number;
  /** Milliseconds in which the code host must begin to give what a mirror lacks. Default: stored-objects.ts. */
  readonly firstByteMs?: number;
  /** `cache.prune_unreachable_after`, in milliseconds. Default: never. */
  readonly pruneAfterMs?: number;
  /** `cache.detect_sha1_collisions`. Default false. */
  readonly detectCollisions?: boolean;
  /** `cache.max_total_size_mb`. Default: no limit. */
  readonly maxTotalMb?: number;
  /** `cache.drop_unused_after`, in milliseconds. Default: never. */
  readonly dropUnusedAfterMs?: number;
  /** Who fetches ahead. Default: nobody. */
  readonly warming?: WarmerOptions | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}
