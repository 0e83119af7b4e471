import type { RepositoryId } from "../../access/repository-id.ts";
import { repositoryId } from "../../access/repository-id.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { FaultLog } from "../fault-log.ts";
import type { BucketFigures, CachePolicy } from "../policy.ts";
import type { ResponseStore } from "../responses/response-store.ts";
import type { BucketMaintainer } from "./maintenance/bucket-maintainer.ts";
import type { OrphanCollector } from "./maintenance/orphan-collector.ts";
import type { ManifestStore } from "./manifest/manifest-store.ts";
import type { MirrorTier } from "./mirror/mirror-tier.ts";
import type { BucketResponses } from "./responses/bucket-responses.ts";
import { bytesOf } from "./responses/listed-responses.ts";
import { RESPONSE_JOB } from "./responses/response-upload.ts";
import type { ResponseUses } from "./responses/response-uses.ts";
import type { UploadQueue } from "./uploads/upload-queue.ts";

export interface ObjectTierParts {
  /** Responses of both tiers. */
  readonly responses: ResponseStore;
  readonly mirrors: MirrorTier;
  readonly collector: OrphanCollector;
  /** Keeps leases in the bucket. Undefined: a database does. */
  readonly leases: BucketMaintainer | undefined;
  readonly manifests: Pick<ManifestStore, "known">;
  readonly bucket: BucketResponses;
  readonly queue: UploadQueue;
  readonly uses: ResponseUses;
  readonly faults: Pick<FaultLog, "once">;
  readonly metrics: Pick<Metrics, "objectSize" | "forgetObjectSize">;
}

/** The bucket behind the local cache, as the rest of the cache sees it. */
export class ObjectTier {
  readonly responses: ResponseStore;
  readonly mirrors: MirrorTier;
  readonly #parts: ObjectTierParts;

  constructor(parts: ObjectTierParts) {
    this.#parts = parts;
    this.responses = parts.responses;
    this.mirrors = parts.mirrors;
  }

  /** Reads what the last run has left. Call it once, before the first request. @throws a system error */
  async prepare(): Promise<void> {
    await this.#parts.queue.restore();
  }

  /** Uploads, follows other instances and collects in the background until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { queue, uses, mirrors, collector, leases } = this.#parts;
    await Promise.all([
      queue.run(signal),
      uses.run(signal),
      mirrors.run(signal),
      collector.run(signal),
      leases?.run(signal),
    ]);
  }

  /** Gives uploads a last chance, while {@link run} still runs. @param ms maximum time */
  async drain(ms: number): Promise<void> {
    await this.#parts.queue.drain(ms);
  }

  /** Waits for writes of the list of uploads, and for transfers that requests began. */
  async settled(): Promise<void> {
    await this.#parts.mirrors.settled();
    await this.#parts.queue.settled();
  }

  /** Whether a local response is to be uploaded. It is evicted last. */
  isWaiting(id: RepositoryId, key: string): boolean {
    return this.#parts.queue.has({ kind: RESPONSE_JOB, id, subject: key });
  }

  /** Data of a repository in the bucket, and data on its way there. */
  figures(id: RepositoryId): BucketFigures {
    const { manifests, queue } = this.#parts;
    const manifest = manifests.known(id);
    const { jobs: waiting, bytes: waitingBytes } = queue.figures(id);
    if (manifest === undefined)
      return { sizeBytes: undefined, responses: 0, packs: 0, waiting, waitingBytes };
    const { responses, packs } = manifest;
    const objects = [
      ...responses.map(({ object }) => object),
      ...packs.flatMap(({ files }) => Object.values(files)),
    ];
    return {
      sizeBytes: bytesOf(objects),
      responses: responses.length,
      packs: packs.length,
      waiting,
      waitingBytes,
    };
  }

  /** Keeps a repository in the bucket within its limit, as far as its manifest is known. Never rejects. */
  async enforceLimit({ owner, name }: CachePolicy): Promise<void> {
    const { bucket, faults, metrics } = this.#parts;
    const id = repositoryId(owner, name);
    try {
      await bucket.enforceLimit(id);
    } catch (error) {
      faults.once({ id }, error, "the size of a repository in the bucket cannot be kept");
    }
    const figures = bucket.figures(id);
    if (figures !== undefined) metrics.objectSize(owner, name, figures.bytes);
  }

  /** Forgets the size of a repository that is not listed any more. */
  forget(owner: string, name: string): void {
    this.#parts.metrics.forgetObjectSize(owner, name);
  }
}
