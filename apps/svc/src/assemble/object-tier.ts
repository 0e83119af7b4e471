import type { ObjectStore } from "@devplat/object-store";
import { isStorable, repositoryId, type RepositoryId } from "../access/repository-id.ts";
import { BucketMaintainer } from "../cache/object-tier/maintenance/bucket-maintainer.ts";
import { MaintainedRepositories } from "../cache/object-tier/maintenance/maintained-repositories.ts";
import type { Maintainer } from "../cache/object-tier/maintenance/maintainer.ts";
import { OrphanCollector } from "../cache/object-tier/maintenance/orphan-collector.ts";
import type { ManifestStore } from "../cache/object-tier/manifest/manifest-store.ts";
import { Hydrations } from "../cache/object-tier/mirror/hydrations.ts";
import { MirrorSync } from "../cache/object-tier/mirror/mirror-sync.ts";
import { MirrorTier } from "../cache/object-tier/mirror/mirror-tier.ts";
import { MIRROR_JOB, MirrorUpload } from "../cache/object-tier/mirror/mirror-upload.ts";
import { PackUploads } from "../cache/object-tier/mirror/pack-upload.ts";
import { newPackName, type ObjectNames } from "../cache/object-tier/object-names.ts";
import { ObjectTier } from "../cache/object-tier/object-tier.ts";
import { BucketResponses } from "../cache/object-tier/responses/bucket-responses.ts";
import { RESPONSE_JOB, ResponseUpload } from "../cache/object-tier/responses/response-upload.ts";
import { ResponseUses } from "../cache/object-tier/responses/response-uses.ts";
import { InstanceSharing, type InstanceSharingParts } from "../cache/object-tier/sharing/instance-sharing.ts";
import { CheckedObjects } from "../cache/object-tier/slices/checked-objects.ts";
import { CheckedUploads } from "../cache/object-tier/slices/checked-uploads.ts";
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
  /** One fetch from the code host for all instances. Undefined: each instance fetches for itself. */
  readonly sharing?: SharingSettings | undefined;
  /** Name of the object with the manifest of a repository. Undefined: it never changes. */
  readonly manifestName?: ((id: RepositoryId) => Promise<string | undefined>) | undefined;
  /** Leases of the common database. Undefined: leases are objects in the bucket. */
  readonly maintainer?: Maintainer | undefined;
  /** Milliseconds between two reads of the manifests of repositories in use. Default 30 seconds. */
  readonly readIntervalMs?: number;
  /** Whether the store honours `If-Match` at a delete, as far as it was probed. Default: it does not. */
  readonly deletesWithCondition?: () => boolean;
}

/** Parts by which instances on one database share their fetches. */
export type SharingSettings = Pick<InstanceSharingParts, "fetches" | "keyOf" | "reports"> & {
  /** Whether the bucket can be used now. */
  readonly isUsable: () => boolean;
};

/** Builds the bucket behind the local cache. */
export function buildObjectTier(settings: ObjectTierSettings, inputs: ObjectTierInputs): ObjectTier {
  const { store, names, manifests, epochs, writer } = settings;
  const { local, mirrors, repositories, policies, faults, work, metrics, clock, stopping } = inputs;
  const bucket = new BucketResponses({ manifests, epochs, policies, now: () => store.now() });
  const queue = new UploadQueue(
    { journal: new UploadJournal(settings.localPath), epochs, faults, clock },
    {
      maxBytes: settings.queueBytes,
      parallel: settings.uploadParallel,
      onTried: (kind, result) => metrics.uploaded(kind, result),
    },
  );
  const reset = new BucketReset({ manifests, epochs, queue, clock });
  queue.register(RESPONSE_JOB, new ResponseUpload({ local, bucket, store, names, writer }));
  queue.register(RESET_JOB, reset);
  const objects = new CheckedObjects(store, names);
  const uploads = new PackUploads({
    target: new CheckedUploads(store, names),
    newName: (pack) => newPackName(pack, writer),
    clock,
  });
  const sync = new MirrorSync({
    mirrors,
    manifests,
    source: objects,
    uploads,
    epochs,
    shown: (id) => repositories.of(id).tips.recent().refs.values(),
    pruneAfterMs: inputs.pruneAfterMs,
    clock,
  });
  queue.register(MIRROR_JOB, new MirrorUpload(sync));
  const isPurging = (id: RepositoryId): boolean => reset.isPending(id);
  const hydrations = new Hydrations({ sync, isPurging, faults, clock, stopping });
  const leases =
    settings.maintainer === undefined
      ? new BucketMaintainer({ store, names, manifests, instance: writer, clock })
      : undefined;
  const maintainer = new MaintainedRepositories(settings.maintainer ?? leases!);
  const mirrorTier = new MirrorTier(
    {
      sync,
      hydrations,
      maintainer,
      manifests,
      mirrors,
      queue,
      repositories,
      faults,
      clock,
    },
    { readIntervalMs: settings.readIntervalMs },
  );
  const collector = new OrphanCollector(
    {
      store,
      names,
      manifests,
      epochs,
      maintainer,
      manifestName: settings.manifestName,
      // A removed repository leaves objects that nobody needs any more.
      async repositories() {
        const listed = policies.all().map(({ owner, name }) => repositoryId(owner, name));
        return new Map([...listed, ...(await epochs.purged())].map((id) => [id.key, id])).values();
      },
      faults,
      clock,
    },
    { deletesWithCondition: settings.deletesWithCondition },
  );
  const uses = new ResponseUses(bucket, faults, clock);
  const responses = new TieredResponseStore({
    local,
    bucket,
    objects,
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
  const { sharing } = settings;
  return new ObjectTier({
    responses,
    sharing:
      sharing &&
      new InstanceSharing({
        ...sharing,
        isUsable: (id) => sharing.isUsable() && !isPurging(id),
        epochs,
        manifests,
        bucket,
        mirrors: hydrations,
        queue,
        work,
        clock,
        firstByteMs: settings.firstByteMs,
        stopping,
      }),
    mirrors: mirrorTier,
    collector,
    leases,
    maintained: maintainer,
    manifests,
    bucket,
    queue,
    reset,
    uses,
    faults,
    metrics,
    clock,
  });
}
