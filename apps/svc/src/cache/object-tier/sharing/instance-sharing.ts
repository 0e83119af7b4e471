import { createHash } from "node:crypto";
import { TimeLimit, type Clock } from "@devplat/base";
import type { RepositoryId } from "../../../access/repository-id.ts";
import type { JoinOptions, SharedFetches } from "../../../coordination/shared-fetches.ts";
import type { BackgroundWork } from "../../background-work.ts";
import type {
  FetchForAll,
  FetchSharing,
  FetchTurn,
  FetchTurnOptions,
  LateArrival,
} from "../../fetch-sharing.ts";
import type { MirrorSource } from "../../mirror-source.ts";
import type { EpochSource } from "../manifest/epoch-source.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import { mirrorJob } from "../mirror/mirror-upload.ts";
import type { BucketResponses } from "../responses/bucket-responses.ts";
import { RESPONSE_JOB } from "../responses/response-upload.ts";
import type { UploadJob } from "../uploads/upload-job.ts";
import type { UploadQueue } from "../uploads/upload-queue.ts";
import { LedForAll } from "./led-for-all.ts";
import type { LedFetchReport, SharedFetchReports, SharedFetchResult } from "./shared-fetch-reports.ts";

export interface InstanceSharingParts {
  readonly fetches: Pick<SharedFetches, "join" | "becomesShared">;
  /** Key of a repository in the common database. */
  readonly keyOf: (id: RepositoryId) => string;
  readonly epochs: Pick<EpochSource, "of">;
  readonly manifests: Pick<ManifestStore, "current">;
  readonly bucket: Pick<BucketResponses, "known">;
  readonly mirrors: MirrorSource;
  readonly queue: Pick<UploadQueue, "add" | "hurry" | "ended">;
  /** Whether data can go through the bucket now. */
  readonly isUsable: (id: RepositoryId) => boolean;
  readonly reports: Pick<SharedFetchReports, "turn" | "led">;
  readonly work: Pick<BackgroundWork, "start">;
  readonly clock: Clock;
  /** `cache.object_timeout_seconds`, in milliseconds. */
  readonly firstByteMs: number;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

const ALONE: FetchTurn = { kind: "alone" };

/** {@link FetchSharing} by records in the common database. The data goes through the bucket. */
export class InstanceSharing implements FetchSharing {
  readonly #parts: InstanceSharingParts;

  constructor(parts: InstanceSharingParts) {
    this.#parts = parts;
  }

  async response(id: RepositoryId, key: string, options: FetchTurnOptions): Promise<FetchTurn> {
    const { bucket } = this.#parts;
    const job = { kind: RESPONSE_JOB, id, subject: key, bytes: 0 };
    const isThere = async (signal: AbortSignal): Promise<boolean> => {
      await this.#refreshManifest(id, signal);
      return bucket.known(id, key) !== undefined;
    };
    return await this.#turn(id, `response ${key}`, options, isThere, (fetch) =>
      // Most responses are never read again. They are uploaded only for an instance that waits.
      this.#lead(fetch, job, { onlyIfAwaited: true, isThere: () => bucket.known(id, key) !== undefined }),
    );
  }

  async objects(id: RepositoryId, subject: string, options: FetchTurnOptions): Promise<FetchTurn> {
    const { mirrors, firstByteMs } = this.#parts;
    const digest = createHash("sha256").update(subject).digest("hex");
    const pull = async (signal: AbortSignal): Promise<boolean> => {
      await this.#refreshManifest(id, signal);
      // Objects that are missing after it are fetched from the code host.
      await mirrors.refresh(id, options.waitMs ?? firstByteMs);
      return true;
    };
    return await this.#turn(id, `objects ${digest}`, options, pull, (fetch) =>
      this.#lead(fetch, mirrorJob(id), { onlyIfAwaited: false, isThere: () => true }),
    );
  }

  /**
   * @param read gets the data of another instance. False: it is not there
   * @param lead makes the fetch of this instance
   */
  async #turn(
    id: RepositoryId,
    subject: string,
    options: FetchTurnOptions,
    read: (signal: AbortSignal) => Promise<boolean>,
    lead: (fetch: LedFetchOf) => FetchForAll,
  ): Promise<FetchTurn> {
    const { fetches, keyOf, epochs, isUsable, reports, clock, stopping } = this.#parts;
    if (!isUsable(id) || stopping.aborted) return ALONE;
    // Data of an earlier epoch was purged.
    const key = `${keyOf(id)} ${epochs.of(id)} ${subject}`;
    const { since = clock.monotonic() } = options;
    const signal = AbortSignal.any([options.signal, stopping]);
    let join: JoinOptions = { ...options, signal, since };
    const report = (result: SharedFetchResult, fence: number | undefined): void =>
      reports.turn(id, { result, fence, waitedMs: clock.monotonic() - since });
    try {
      for (;;) {
        const turn = await fetches.join(key, join);
        if (turn.kind === "alone") {
          report(turn.reason, undefined);
          const { running } = turn;
          if (running === undefined) return ALONE;
          const late: LateArrival = async (responds) => {
            const ends = AbortSignal.any([responds, stopping]);
            const isThere = (await fetches.becomesShared(key, running, ends)) && (await read(ends));
            if (!isThere || ends.aborted) return undefined;
            report("late", running);
            return running;
          };
          return { kind: "alone", late };
        }
        if (turn.kind === "lead") {
          report("led", turn.fetch.fence);
          return { kind: "lead", fetch: lead(turn.fetch) };
        }
        const { fence } = turn;
        if (await read(signal)) {
          report("shared", fence);
          return { kind: "here", fence };
        }
        join = { ...join, insteadOf: fence };
      }
    } catch (error) {
      options.signal.throwIfAborted();
      if (stopping.aborted) return ALONE;
      throw error;
    }
  }

  #lead(
    fetch: LedFetchOf,
    job: Omit<UploadJob, "epoch">,
    how: { readonly onlyIfAwaited: boolean; readonly isThere: () => boolean },
  ): FetchForAll {
    const { queue, work, clock, stopping, reports } = this.#parts;
    const onEnd = (end: LedFetchReport): void => reports.led(job.id, end);
    return new LedForAll({ fetch, job, queue, work, clock, stopping, onEnd, ...how });
  }

  /** Reads the manifest again. Never rejects: without it the data is not there. */
  async #refreshManifest(id: RepositoryId, signal: AbortSignal): Promise<void> {
    const { manifests, clock, firstByteMs } = this.#parts;
    using limit = new TimeLimit(clock, firstByteMs, signal);
    await manifests.current(id, { signal: limit.signal }).catch(() => undefined);
  }
}

type LedFetchOf = Extract<Awaited<ReturnType<SharedFetches["join"]>>, { readonly kind: "lead" }>["fetch"];
