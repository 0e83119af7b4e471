import { TimeLimit, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "../../access/repository-id.ts";
import { repositoryId } from "../../access/repository-id.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { FaultLog } from "../fault-log.ts";
import type { FetchSharing } from "../fetch-sharing.ts";
import type { BucketFigures, CachePolicy } from "../policy.ts";
import type { ResponseStore } from "../responses/response-store.ts";
import type { BucketMaintainer } from "./maintenance/bucket-maintainer.ts";
import type { MaintainedRepositories } from "./maintenance/maintained-repositories.ts";
import type { OrphanCollector } from "./maintenance/orphan-collector.ts";
import type { ManifestStore } from "./manifest/manifest-store.ts";
import type { MirrorTier } from "./mirror/mirror-tier.ts";
import type { BucketResponses } from "./responses/bucket-responses.ts";
import { bytesOf } from "./responses/listed-responses.ts";
import { RESPONSE_JOB } from "./responses/response-upload.ts";
import type { ResponseUses } from "./responses/response-uses.ts";
import type { BucketReset } from "./uploads/bucket-reset.ts";
import type { UploadQueue } from "./uploads/upload-queue.ts";

/** Maximum milliseconds to wait for figures: an administrator waits for a page. */
const LOOK_MS = 2000;
/** Milliseconds after which a missing manifest is asked for again. */
const LOOK_AGAIN_MS = 30_000;
/** Missing manifests that are remembered. */
const MAX_ABSENT = 100_000;
/** Concurrent reads of manifests: half of the connections for them. */
const CONCURRENT_LOOKS = 8;

export interface ObjectTierParts {
  /** Responses of both tiers. */
  readonly responses: ResponseStore;
  /** Undefined: each instance fetches for itself. */
  readonly sharing: FetchSharing | undefined;
  readonly mirrors: MirrorTier;
  readonly collector: OrphanCollector;
  /** Keeps leases in the bucket. Undefined: a database does. */
  readonly leases: BucketMaintainer | undefined;
  readonly maintained: Pick<MaintainedRepositories, "has" | "forget" | "mayMaintain">;
  readonly manifests: Pick<ManifestStore, "known" | "current">;
  readonly bucket: BucketResponses;
  readonly queue: UploadQueue;
  readonly reset: Pick<BucketReset, "followed">;
  readonly uses: ResponseUses;
  readonly faults: Pick<FaultLog, "once">;
  readonly metrics: Pick<Metrics, "objectSize" | "forgetObjectSize">;
  readonly clock: Clock;
}

/** The bucket behind the local cache, as the rest of the cache sees it. */
export class ObjectTier {
  readonly responses: ResponseStore;
  readonly mirrors: MirrorTier;
  readonly sharing: FetchSharing | undefined;
  readonly #parts: ObjectTierParts;
  /** Repositories without a manifest that can be used, as a look at the bucket showed. */
  readonly #absent: BoundedMap<string, true>;

  constructor(parts: ObjectTierParts) {
    this.#parts = parts;
    const now = (): number => parts.clock.monotonic();
    this.#absent = new BoundedMap({ max: MAX_ABSENT, ttlMs: LOOK_AGAIN_MS, now });
    this.responses = parts.responses;
    this.mirrors = parts.mirrors;
    this.sharing = parts.sharing;
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

  /** Waits until the bucket has followed the purge of a repository. @returns whether it has. Never rejects. */
  async purged(id: RepositoryId, signal: AbortSignal): Promise<boolean> {
    return await this.#parts.reset.followed(id, signal);
  }

  /** Whether a local response is to be uploaded. It is evicted last. */
  isWaiting(id: RepositoryId, key: string): boolean {
    return this.#parts.queue.has({ kind: RESPONSE_JOB, id, subject: key });
  }

  /**
   * Reads manifests, so that {@link figures} has them: first those that are not known yet, then those that were read longer ago
   * than {@link LOOK_AGAIN_MS}. Those that do not come in time stay as they are. Never rejects.
   */
  async look(ids: Iterable<RepositoryId>): Promise<void> {
    const { manifests, clock } = this.#parts;
    const asked = [...ids].filter((id) => this.#absent.get(id.key) === undefined);
    if (asked.length === 0) return;
    // The last one is taken first.
    const isKnown = (id: RepositoryId): boolean => manifests.known(id) !== undefined;
    const waiting = [...asked.filter(isKnown), ...asked.filter((id) => !isKnown(id))];
    using limit = new TimeLimit(clock, LOOK_MS);
    const readAll = async (): Promise<void> => {
      for (let id = waiting.pop(); id !== undefined && !limit.signal.aborted; id = waiting.pop()) {
        try {
          const found = await manifests.current(id, { maxAgeMs: LOOK_AGAIN_MS, signal: limit.signal });
          if (found === undefined) this.#absent.set(id.key, true);
        } catch {
          // The store does not answer. Its state is shown elsewhere.
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_LOOKS }, readAll));
  }

  /** Data of a repository in the bucket, and data on its way there. */
  figures(id: RepositoryId): BucketFigures {
    const { manifests, queue } = this.#parts;
    const manifest = manifests.known(id);
    const { jobs: waiting, bytes: waitingBytes } = queue.figures(id);
    if (manifest === undefined)
      return {
        sizeBytes: this.#absent.get(id.key) === undefined ? undefined : 0,
        responses: 0,
        packs: 0,
        waiting,
        waitingBytes,
      };
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

  /**
   * Keeps a repository in the bucket within its limit, as far as its manifest is known, if this instance maintains it. Never
   * rejects.
   */
  async enforceLimit({ owner, name }: CachePolicy): Promise<void> {
    const { bucket, maintained, faults } = this.#parts;
    const id = repositoryId(owner, name);
    try {
      if (bucket.isOverLimit(id) && (await maintained.mayMaintain(id)) !== undefined)
        await bucket.enforceLimit(id);
    } catch (error) {
      faults.once({ id }, error, "the size of a repository in the bucket cannot be kept");
    }
    this.#measure(owner, name);
  }

  /** The gauge is a sum over the bucket, so only one instance may have it. */
  #measure(owner: string, name: string): void {
    const { maintained, metrics } = this.#parts;
    const id = repositoryId(owner, name);
    const { sizeBytes } = this.figures(id);
    if (maintained.has(id) && sizeBytes !== undefined) metrics.objectSize(owner, name, sizeBytes);
    else metrics.forgetObjectSize(owner, name);
  }

  /** Forgets the size of a repository that is not listed any more. */
  forget(owner: string, name: string): void {
    this.#parts.maintained.forget(repositoryId(owner, name));
    this.#parts.metrics.forgetObjectSize(owner, name);
  }
}
