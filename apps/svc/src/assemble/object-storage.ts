import { randomBytes } from "node:crypto";
import { statfs } from "node:fs/promises";
import type { Clock, Logger } from "@devplat/base";
import type { BucketReport } from "../cache/object-tier/bucket/bucket-report.ts";
import type { BucketState } from "../cache/object-tier/bucket/probed-store.ts";
import { LeaseMaintainer } from "../cache/object-tier/maintenance/lease-maintainer.ts";
import { SharedFetchReports } from "../cache/object-tier/sharing/shared-fetch-reports.ts";
import type { Config } from "../config/schema.ts";
import { hasCommonDatabase, sharesFetches } from "../config/common-database.ts";
import type { RepositoryEpochs } from "../coordination/repository-epochs.ts";
import { repositoryKey } from "../coordination/repository-key.ts";
import { Leases } from "../coordination/leases.ts";
import { SharedFetches } from "../coordination/shared-fetches.ts";
import { SvcError } from "../errors.ts";
import type { Store } from "../storage/store.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { SharedFetchMetrics } from "../telemetry/shared-fetch-metrics.ts";
import { assembleBucket } from "./bucket.ts";
import type { CacheSettings } from "./cache-parts.ts";
import { objectKeys } from "./object-keys.ts";
import { buildObjectTier, type SharingSettings } from "./object-tier.ts";

const MEGABYTE = 1024 * 1024;
/** Random bytes in the id of an instance. It is part of names in the bucket. */
const WRITER_BYTES = 6;
/** Part of the disk of the local cache that it takes if no limit is configured (svc-scale §1). */
const DISK_SHARE = 0.8;

export interface ObjectStorageOptions {
  readonly config: Config;
  readonly store: Store;
  readonly epochs: RepositoryEpochs;
  /** `cache.local_path`, absolute. */
  readonly localPath: string;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The configured bucket behind the cache. */
export interface ObjectStorage {
  readonly build: NonNullable<CacheSettings["objectTier"]>;
  readonly report: BucketReport;
  /** Id of the key of manifests. */
  readonly keyId: string;
  /** Probes the bucket until it can be used. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Probes the bucket now. @throws SvcError `config_refused`: it cannot be used */
  require(): Promise<void>;
  /** Ends all connections. */
  close(): Promise<void>;
}

/** Assembles the bucket behind the cache. It is loaded only where one is configured. @throws SvcError `config_refused` */
export async function assembleObjectStorage(options: ObjectStorageOptions): Promise<ObjectStorage> {
  const { config, store, epochs, localPath, metrics, clock, logger } = options;
  const { cache } = config;
  const isShared = hasCommonDatabase(config);
  const writer = randomBytes(WRITER_BYTES).toString("hex");
  const keys = await objectKeys(config, store.oneTime);
  const bucket = assembleBucket({
    config,
    keys,
    epochs,
    writer,
    pointers: isShared ? store.manifestPointers : undefined,
    metrics,
    clock,
    logger,
  });
  const sharing = (): SharingSettings => {
    const parts = { store: store.sharedFetches, instance: writer, clock, logger };
    return {
      fetches: new SharedFetches(parts, { waitMs: cache.share_wait_seconds * 1000 }),
      keyOf: (id) => repositoryKey(config.host.url, id),
      reports: new SharedFetchReports(new SharedFetchMetrics(metrics.registry), logger),
      isUsable: () => bucket.report.isUsable,
    };
  };
  const leases = new Leases({ store: store.leases, instance: writer, clock, logger });
  // Instances on a common Postgres elect by its leases, so that no request to the bucket is needed.
  const maintainer = isShared
    ? new LeaseMaintainer({
        hold: (name, ttlMs) => leases.hold(name, ttlMs),
        nameOf: (id) => `packs ${repositoryKey(config.host.url, id)}`,
        manifests: bucket.manifests,
        clock,
      })
    : undefined;
  return {
    build: (inputs) =>
      buildObjectTier(
        {
          store: bucket.store,
          names: bucket.names,
          manifests: bucket.manifests,
          manifestName: bucket.manifestName,
          epochs,
          writer,
          localPath,
          firstByteMs: cache.object_timeout_seconds * 1000,
          uploadParallel: cache.object_upload_parallel,
          queueBytes: cache.object_queue_mb * MEGABYTE,
          maintainer,
          deletesWithCondition: () => deletesWithCondition(bucket.store.state),
          sharing: sharesFetches(config) ? sharing() : undefined,
        },
        inputs,
      ),
    report: bucket.report,
    keyId: keys.currentId,
    run: async (signal) => bucket.store.run(signal),
    require: async () => requireUsable(await bucket.store.probe()),
    async close() {
      await maintainer?.close();
      await bucket.store.close();
    },
  };
}

/**
 * `cache.local_max_size_mb` in bytes, by default a part of the disk.
 *
 * @param folder that exists
 */
export async function localLimit({ cache }: Config, folder: string): Promise<number> {
  if (cache.local_max_size_mb !== undefined) return cache.local_max_size_mb * MEGABYTE;
  const { blocks, bsize } = await statfs(folder);
  return blocks * bsize * DISK_SHARE;
}

function deletesWithCondition(state: BucketState): boolean {
  if (state.kind !== "usable") return false;
  return state.abilities.rows.some(
    ({ ability, result }) => ability === "delete with If-Match" && result === "yes",
  );
}

function requireUsable(state: BucketState): void {
  if (state.kind !== "unusable") return;
  throw new SvcError("config_refused", `The bucket cannot be used: ${state.reason}`, {
    hint: "Run svc doctor --bucket, or start without --require-object-store",
  });
}
