import type { Clock, Logger } from "@devplat/base";
import {
  CircuitBreaker,
  ObjectStoreError,
  awsChain,
  fixedCredentials,
  type ObjectStore,
} from "@devplat/object-store";
import { openS3Store, type S3Settings } from "@devplat/object-store/s3";
import { BucketReport, REFUSED_MANIFESTS } from "../cache/object-tier/bucket/bucket-report.ts";
import { ProbedStore } from "../cache/object-tier/bucket/probed-store.ts";
import { BucketManifestStore } from "../cache/object-tier/manifest/bucket-manifest-store.ts";
import type { EpochSource } from "../cache/object-tier/manifest/epoch-source.ts";
import type { ManifestKeys } from "../cache/object-tier/manifest/manifest-keys.ts";
import { ChosenManifestFile } from "../cache/object-tier/manifest/chosen-manifest-file.ts";
import { ConditionalManifestFile } from "../cache/object-tier/manifest/manifest-file.ts";
import { ManifestMemory } from "../cache/object-tier/manifest/manifest-memory.ts";
import { ManifestReader } from "../cache/object-tier/manifest/manifest-reader.ts";
import { ManifestRefusals } from "../cache/object-tier/manifest/manifest-refusals.ts";
import { PointersInUse } from "../cache/object-tier/manifest/pointers-in-use.ts";
import { PointedManifestFile } from "../cache/object-tier/manifest/pointed-manifest-file.ts";
import type { ManifestStore } from "../cache/object-tier/manifest/manifest-store.ts";
import { ObjectNames } from "../cache/object-tier/object-names.ts";
import type { RepositoryId } from "../access/repository-id.ts";
import type { Config } from "../config/schema.ts";
import { repositoryKey } from "../coordination/repository-key.ts";
import type { ManifestPointerStore } from "../storage/coordination-store.ts";
import { SvcError } from "../errors.ts";
import { ObjectTierMetrics } from "../telemetry/object-tier-metrics.ts";
import type { Metrics } from "../telemetry/metrics.ts";

export interface BucketOptions {
  readonly config: Config;
  readonly keys: ManifestKeys;
  readonly epochs: EpochSource;
  /** Id of this instance. */
  readonly writer: string;
  /** Rows of the database that the instances share. Undefined: they share none. */
  readonly pointers: ManifestPointerStore | undefined;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The configured bucket, and its manifests. */
export interface BucketAssembly {
  /** Behind the probe and the circuit breaker. The caller closes it. */
  readonly store: ProbedStore;
  readonly names: ObjectNames;
  readonly manifests: ManifestStore;
  /** Name of the object with the manifest of a repository. Undefined, or with this result: it never changes. */
  readonly manifestName: ((id: RepositoryId) => Promise<string | undefined>) | undefined;
  readonly report: BucketReport;
}

/** Assembles the bucket. Sends nothing. @throws SvcError `config_refused` */
export function assembleBucket(options: BucketOptions): BucketAssembly {
  const { config, keys, epochs, writer, pointers, clock, logger } = options;
  const metrics = new ObjectTierMetrics(options.metrics.registry, Object.keys(REFUSED_MANIFESTS));
  const raw = openBucket(config);
  const names = objectNames(config, keys);
  const circuit = new CircuitBreaker(raw, {
    clock,
    onChange: (state) => {
      metrics.circuit(state !== "closed");
      if (state === "open") logger.warn({}, "the bucket fails: it is left alone for 30 seconds");
      else if (state === "closed") logger.info({}, "the bucket answers again");
    },
  });
  const store = new ProbedStore({
    store: raw,
    guarded: circuit,
    prefix: names.root.replace(/\/$/, ""),
    pointers: pointers && new PointersInUse(pointers, config.cache.object_bucket ?? "", names.root),
    clock,
    logger,
    onState: ({ kind }) => metrics.usable(kind === "usable"),
    settings: config.cache,
  });
  const refusals = new ManifestRefusals({
    logger,
    onRefused: (reason) => metrics.manifestRefused(reason),
  });
  const memory = new ManifestMemory(epochs);
  const hostUrl = config.host.url;
  const keyOf = (id: RepositoryId): string => repositoryKey(hostUrl, id);
  const pointed = pointers && new PointedManifestFile({ store, names, pointers, keyOf, writer, clock });
  const file = new ChosenManifestFile(store, new ConditionalManifestFile(store, names), pointed);
  const parts = { store, file, hostUrl, keys, epochs, memory, refusals, clock };
  const reader = new ManifestReader(parts);
  return {
    store,
    names,
    manifests: new BucketManifestStore({ ...parts, reader, writer }),
    manifestName: pointed && (async (id) => (store.hasConditions ? undefined : pointed.currentName(id))),
    report: new BucketReport({ probed: store, circuit, refusals }),
  };
}

/** Refuses settings of the bucket with which no start succeeds. Sends nothing. @throws SvcError `config_refused` */
export async function checkBucketSettings(config: Config): Promise<void> {
  const { cache, host } = config;
  if (!cache.enabled || cache.object_bucket === undefined) return;
  await openBucket(config).close();
  namesWith(cache.storage_path, host.url, undefined);
}

/** The client of the configured bucket, without a probe. Sends nothing. @throws SvcError `config_refused` */
export function openBucket({ cache }: Config): ObjectStore {
  const { object_access_key_id: keyId, object_secret_access_key: secretKey } = cache;
  const encryption: Record<string, S3Settings["encryption"]> = {
    "sse-s3": { mode: "sse-s3" },
    "sse-kms": {
      mode: "sse-kms",
      ...(cache.object_encryption_key_id !== undefined && { keyId: cache.object_encryption_key_id }),
    },
  };
  const asked = encryption[cache.object_encryption];
  return refusing("cache.object_*", () =>
    openS3Store({
      bucket: cache.object_bucket ?? "",
      region: cache.object_region,
      endpoint: cache.object_endpoint,
      pathStyle: cache.object_path_style,
      caFile: cache.object_ca_file,
      environment: process.env,
      timeoutMs: cache.object_timeout_seconds * 1000,
      uploadParallel: cache.object_upload_parallel,
      ...(asked !== undefined && { encryption: asked }),
      credentials:
        keyId === undefined || secretKey === undefined ? awsChain() : fixedCredentials(keyId, secretKey),
    }),
  );
}

/** Names of objects in the configured bucket. @throws SvcError `config_refused` */
export function objectNames({ cache, host }: Config, keys: ManifestKeys): ObjectNames {
  return namesWith(cache.storage_path, host.url, cache.object_hide_names ? keys.names : undefined);
}

function namesWith(
  prefix: string | undefined,
  hostUrl: string,
  hideKey: ManifestKeys["names"] | undefined,
): ObjectNames {
  return refusing("cache.storage_path", () => new ObjectNames({ prefix: prefix ?? "", hostUrl, hideKey }));
}

function refusing<T>(key: string, open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (!(error instanceof ObjectStoreError)) throw error;
    throw new SvcError("config_refused", `${key}: ${error.message}`, { cause: error });
  }
}
