import type { ObjectStore } from "@devplat/object-store";
import { isStorable } from "../access/repository-id.ts";
import type { ManifestStore } from "../cache/object-tier/manifest/manifest-store.ts";
import type { ObjectNames } from "../cache/object-tier/object-names.ts";
import { ObjectTier } from "../cache/object-tier/object-tier.ts";
import { BucketResponses } from "../cache/object-tier/responses/bucket-responses.ts";
import { RESPONSE_JOB, ResponseUpload } from "../cache/object-tier/responses/response-upload.ts";
import { ResponseUses } from "../cache/object-tier/responses/response-uses.ts";
import { CheckedObjects } from "../cache/object-tier/slices/checked-objects.ts";
import { TieredResponseStore } from "../cache/object-tier/tiered-response-store.ts";
import { BucketReset, RESET_JOB, type PurgeEpochs } from "../cache/object-tier/uploads/bucket-reset.ts";
import { UploadJournal } from "../cache/object-tier/uploads/upload-journal.ts";
import { UploadQueue } from "../cache/object-tier/uploads/upload-queue.ts";
import type { ObjectTierInputs } from "./cache-parts.ts";

/** The bucket and its manifests, and the limits of its use. */
export interface ObjectTierSettings {
  /** Behind a circuit breaker. */
  readonly store: ObjectStore;
  readonly names: ObjectNames;
  readonly manifests: ManifestStore;
  readonly epochs: PurgeEpochs;
  /** Id of this instance. */
  readonly writer: string;
  /** `cache.local_path` */
  readonly localPath: string;
  /** `cache.object_timeout_seconds`, in milliseconds. */
  readonly firstByteMs: number;
  /** `cache.object_upload_parallel` */
  readonly uploadParallel: number;
  /** `cache.object_queue_mb`, in bytes. */
  readonly queueBytes: number;
}

/** Builds the bucket behind the local cache. */
export function buildObjectTier(settings: ObjectTierSettings, inputs: ObjectTierInputs): ObjectTier {
  const { store, names, manifests, epochs, writer } = settings;
  const { local, repositories, policies, faults, work, metrics, clock, stopping } = inputs;
  const bucket = new BucketResponses({ manifests, epochs, policies, now: () => store.now() });
  const queue = new UploadQueue(
    { journal: new UploadJournal(settings.localPath), epochs, faults, clock },
    {
      maxBytes: settings.queueBytes,
      parallel: settings.uploadParallel,
      onTried: (kind, result) => metrics.uploaded(kind, result),
    },
  );
  const reset = new BucketReset({ manifests, epochs, queue });
  queue.register(RESPONSE_JOB, new ResponseUpload({ local, bucket, store, names, writer }));
  queue.register(RESET_JOB, reset);
  const uses = new ResponseUses(bucket, faults, clock);
  const responses = new TieredResponseStore({
    local,
    bucket,
    objects: new CheckedObjects(store, names),
    queue,
    reset,
    uses,
    epochs,
    isReused: (id, key) => isStorable(id) && repositories.of(id).isReused(key),
    faults,
    work,
    clock,
    firstByteMs: settings.firstByteMs,
    stopping,
  });
  return new ObjectTier({ responses, manifests, bucket, queue, uses, faults, metrics });
}
