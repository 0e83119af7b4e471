import { JobFailure, type ResponseChunks } from "@devplat/git-mirror";
import type { Clock } from "@devplat/base";
import { isStorable } from "../../access/repository-id.ts";
import type { ByteSource, Metrics } from "../../telemetry/metrics.ts";
import { isUploadPackResult } from "../../upstream/headers.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import type { BackgroundWork } from "../background-work.ts";
import type { AdmissionQueue } from "../admission/admission-queue.ts";
import type { Place } from "../admission/fair-queue.ts";
import { counted, upstreamWork } from "../admission/places.ts";
import type { FetchJob, PlannedFetch, WaitingJob } from "../fetch-plan.ts";
import type { FetchSharing, FetchTurn } from "../fetch-sharing.ts";
import type { MirrorFiller } from "../filling/mirror-filler.ts";
import type { FillWatch } from "../filling/fill-watch.ts";
import type { RepositoryReset } from "../repository-reset.ts";
import type { ResponseRecorder } from "../responses/response-recorder.ts";
import type { ResponseStore } from "../responses/response-store.ts";
import type { MirrorFaults } from "../mirror-faults.ts";
import type { MirrorResponses, MirrorAttempt, MirrorOutcome } from "../mirror-responses.ts";
import type { CoalescedFetches, LedFetch } from "./coalesced-fetches.ts";
import { LateShare } from "./late-share.ts";
import { respondWithKeepalive } from "./respond-with-keepalive.ts";
import { TransferForAll } from "./transfer-for-all.ts";

/** A fetch without a stored response and without a running fetch to join. */
export interface LeadTask {
  readonly job: WaitingJob;
  /** Undefined: the response must be neither stored nor shared. */
  readonly key: string | undefined;
  /** See sharingKey. */
  readonly shared: string;
  /** True if a stored response could not be read. Then no stored data is used for this request. */
  readonly broken: boolean;
  /** Whether stored responses may be sent to the client. */
  readonly mayRead: boolean;
  /** Fence of the fetch of another instance whose response could not be read. */
  readonly insteadOf: number | undefined;
  /** End of the time that the request may wait, in `clock.monotonic()`. */
  readonly deadline: number;
}

export interface LeadFetchParts {
  readonly mirror: MirrorResponses;
  readonly filler: MirrorFiller;
  readonly mirrorFaults: MirrorFaults;
  readonly fetches: CoalescedFetches;
  readonly recorder: ResponseRecorder;
  readonly responses: Pick<ResponseStore, "refer">;
  /** Undefined: each instance fetches for itself. */
  readonly sharing: FetchSharing | undefined;
  readonly upstreamQueue: AdmissionQueue;
  readonly fills: FillWatch;
  readonly reset: RepositoryReset;
  readonly background: BackgroundWork;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Milliseconds between keepalive packets for a client that waits. */
  readonly keepAliveMs: number;
}

/** No response yet. Look again: in the mirror, which has been filled, or for the response that another instance fetched. */
export interface LookAgain {
  /** Fence of the fetch of the other instance. */
  readonly shared: number | undefined;
}

/** A response that the mirror made, and how. */
interface MirrorResponse {
  readonly chunks: ResponseChunks;
  readonly result: "hit" | "miss";
  readonly source: ByteSource;
  /** False: access is confirmed within the response, after keepalive packets. */
  readonly confirm: boolean;
  readonly startedAt: number;
}

/**
 * Answers a fetch from the mirror or from the code host, so that other requests can join, and stores the response. Each of
 * the three lifetimes has a method: the coalesced fetch ({@link run}), the place in the queue (`#fromUpstream`), and
 * the stored response (`#begin…`).
 */
export class LeadFetch {
  readonly #parts: LeadFetchParts;

  constructor(parts: LeadFetchParts) {
    this.#parts = parts;
  }

  /**
   * @returns LookAgain if the data has become available while the request waited for a turn
   * @throws GitError if the code host does not answer
   */
  async run(task: LeadTask): Promise<PlannedFetch | LookAgain> {
    const { job, key, shared } = task;
    // The signal may have fired during the search for a stored response. It does not fire again.
    if (job.gone.aborted) return { plan: { kind: "gone" }, confirm: false };
    const led = this.#parts.fetches.open(key === undefined ? undefined : shared, job.format, job);
    try {
      return await this.#respond(task, led);
    } catch (error) {
      led.close();
      led.reader.leave();
      throw error;
    }
  }

  async #respond(task: LeadTask, led: LedFetch): Promise<PlannedFetch | LookAgain> {
    const { mirror, metrics, reset } = this.#parts;
    const { job } = task;
    const startedAt = performance.now();
    const own = await mirror.respond(job, led.fetch.signal, this.#left(task));
    const settled = await this.#settle(job, own, led);
    switch (settled.kind) {
      case "begun": {
        const joins = own.kind === "pending" && !own.leads;
        if (joins) metrics.followed();
        // While keepalive packets are sent, a transfer from the bucket has not ended. It mostly has all objects.
        const reads = settled.keptAlive === true && own.kind === "pending" && own.hydrates === true;
        const result = own.kind === "pending" && own.leads && settled.fetched && !reads ? "miss" : "hit";
        const confirm = settled.keptAlive !== true;
        const source = settled.hydrated === true || reads ? "object" : "pack";
        const made = { chunks: settled.chunks, result, source, confirm, startedAt } as const;
        return await this.#beginFromMirror(task, led, made);
      }
      case "relay":
        return relayed(led, settled.response, () => undefined);
      case "busy":
        return this.#turnedAway(task, led);
      case "unrelated":
        await reset.startAnew(job.repository);
        return await this.#fromUpstream(
          { ...task, job: { ...job, generation: job.repository.generation } },
          led,
        );
      case "failed":
        return await this.#fromUpstream({ ...task, broken: true }, led);
      default:
        return await this.#fromUpstream(task, led);
    }
  }

  /** Waits for a response that is being prepared. The client gets keepalive packets if its request allows them. */
  async #settle(job: WaitingJob, own: MirrorAttempt, led: LedFetch): Promise<MirrorOutcome> {
    if (own.kind !== "pending") return own;
    const { keepAliveMs, reset } = this.#parts;
    const { signal } = led.fetch;
    const pending = own.pending.then((settled) => {
      if (settled.kind === "none" && settled.late !== undefined) void this.#afterLate(job, settled.late);
      return settled;
    });
    return await respondWithKeepalive({ job, pending, signal, intervalMs: keepAliveMs, reset });
  }

  /** Waits for a fetch that goes on for the mirror without the request. Never rejects. */
  async #afterLate({ repository }: FetchJob, late: Promise<boolean>): Promise<void> {
    if (await late) await this.#parts.reset.startAnew(repository);
  }

  async #beginFromMirror({ job, key }: LeadTask, led: LedFetch, made: MirrorResponse): Promise<PlannedFetch> {
    const { recorder, background, metrics, mirrorFaults } = this.#parts;
    const { repository, wantedRefs, generation } = job;
    const pending = await recorder.begin(repository, key);
    const { chunks, result, source, confirm, startedAt } = made;
    const record = async (): Promise<void> => {
      const { reason } = await recorder.record({
        repository,
        key,
        generation,
        wantedRefs,
        led,
        chunks,
        pending,
        isRepeatable: true,
      });
      metrics.packMade((performance.now() - startedAt) / 1000);
      if (reason?.startsWith("pack:") === true) {
        await mirrorFaults.failed(repository, new JobFailure(reason, undefined));
      }
      led.close();
      void led.fetch.closed.then(() => pending?.close());
    };
    background.start(record());
    const plan = { kind: "lead", reader: led.reader, result, source, failed: () => false } as const;
    return { plan, confirm };
  }

  /** Fetches the response from the code host, unless another instance does, and this one can get it from there. */
  async #fromUpstream(task: LeadTask, led: LedFetch): Promise<PlannedFetch | LookAgain> {
    const turn = await this.#turn(task, led);
    if (turn.kind === "here") return leftFor(led, turn.fence);
    const forAll = turn.kind === "lead" ? new TransferForAll(led.fetch, turn.fetch) : undefined;
    using late = new LateShare(turn.kind === "alone" ? turn.late : undefined);
    let hasBegun = false;
    try {
      const planned = await this.#fetch(task, led, { forAll, late });
      hasBegun = "plan" in planned && planned.plan.kind === "lead";
      return planned;
    } finally {
      if (!hasBegun) forAll?.end(false);
    }
  }

  /** Decides which instance fetches. Only a response that may be stored is shared. */
  async #turn({ job, key, mayRead, broken, insteadOf }: LeadTask, { fetch }: LedFetch): Promise<FetchTurn> {
    const { sharing } = this.#parts;
    if (sharing === undefined || key === undefined || !mayRead || broken) return { kind: "alone" };
    try {
      const { signal } = fetch;
      return await sharing.response(job.repository.id, key, { signal, since: job.wait.since, insteadOf });
    } catch (error) {
      // All clients have left. The place is not taken either.
      if (fetch.signal.aborted) return { kind: "alone" };
      throw error;
    }
  }

  /**
   * Waits for a place for a fetch from the code host, and holds it until the response is here. Gives up if the data of another
   * instance arrives before the response begins.
   */
  async #fetch(
    task: LeadTask,
    led: LedFetch,
    { forAll, late }: { readonly forAll: TransferForAll | undefined; readonly late: LateShare },
  ): Promise<PlannedFetch | LookAgain> {
    const { job } = task;
    const place = await this.#place(task, led, late.signal);
    if (place === "over") return leftFor(led, late.fence);
    if (place === undefined) return this.#turnedAway(task, led);
    // A purge while the request waited does not matter: what the code host sends from now on is newer.
    const filling = { ...job, generation: job.repository.generation };
    try {
      const response = await job.upstream.fetch(job.body, AbortSignal.any([led.fetch.signal, late.signal]));
      late.end();
      if (late.fence !== undefined) {
        response.cancel();
        place.release();
        return leftFor(led, late.fence);
      }
      if (!isUploadPackResult(response)) return relayed(led, response, () => place.release());
      const chunks = forAll?.chunks(response.chunks, lengthOf(response)) ?? response.chunks;
      return await this.#beginFromUpstream(task, led, { chunks, place, forAll, filling });
    } catch (error) {
      place.release();
      if (late.fence === undefined) throw error;
      return leftFor(led, late.fence);
    }
  }

  /**
   * @param noLonger fires if the fetch is not needed any more
   * @returns undefined: no place in time; `over`: before it, the mirror was filled, or the fetch became unnecessary
   */
  async #place(
    { job }: LeadTask,
    { fetch }: LedFetch,
    noLonger: AbortSignal,
  ): Promise<Place | "over" | undefined> {
    const { upstreamQueue, fills } = this.#parts;
    const { key } = job.repository.id;
    const filled = fills.watch(key);
    try {
      const over = AbortSignal.any([filled.signal, noLonger]);
      const signal = AbortSignal.any([fetch.signal, over]);
      const place = await upstreamQueue.wait(upstreamWork(key, job.client), job.wait, signal);
      if (place === undefined && over.aborted && !fetch.signal.aborted) return "over";
      return place === "refused" ? undefined : place;
    } finally {
      filled.end();
    }
  }

  async #beginFromUpstream(
    { job, key, broken }: LeadTask,
    led: LedFetch,
    response: {
      readonly chunks: AsyncIterable<Buffer>;
      readonly place: Place;
      /** The job as it was when the request was sent. */
      readonly filling: WaitingJob;
      readonly forAll: TransferForAll | undefined;
    },
  ): Promise<PlannedFetch> {
    const { recorder, background, filler, fills } = this.#parts;
    const { repository, wantedRefs, generation } = job;
    const { place, forAll, filling } = response;
    const chunks = counted(response.chunks, place);
    const { fetch, check } = led;
    const pending = await recorder.begin(repository, key);
    const isStored = key !== undefined && pending !== undefined;
    const recorded = Promise.withResolvers<boolean>();
    const begun = (work: Promise<void>): void => {
      const both = Promise.all([recorded.promise, fills.begun(repository, work)]);
      background.start(
        both.then(async ([stored]) => {
          if (stored && fill?.selfContained === true) await this.#refer(job, key);
        }),
      );
    };
    const fill = broken ? undefined : filler.fillBehind(filling, fetch, isStored, begun);
    const record = async (): Promise<void> => {
      const isRepeatable = false;
      const recording = { repository, key, generation, wantedRefs, led, chunks, pending, isRepeatable };
      const { stored, isReadable, bytes } = await recorder.record(recording);
      recorded.resolve(stored);
      forAll?.end(stored);
      place.release();
      const source =
        isReadable && pending !== undefined ? { chunks: () => pending.chunks(bytes) } : undefined;
      if (check.complete && check.packStarted) void fill?.complete(source);
      else fill?.cancel();
      led.close();
      // The recording does not wait for slow readers.
      void Promise.all([fetch.closed, fill?.done]).then(() => pending?.close());
    };
    const recording = record().catch((error: unknown) => {
      fill?.cancel();
      throw error;
    });
    background.start(recording.finally(() => recorded.resolve(false)));
    const noFile = isStorable(repository.id) && pending === undefined;
    const failed = (): boolean => broken || noFile || fetch.diskError !== undefined;
    return {
      plan: { kind: "lead", reader: led.reader, result: "miss", source: "upstream", failed },
      confirm: false,
    };
  }

  /** After the fill the mirror has the pack of the response, too: one copy is enough until the response is used again. */
  async #refer({ repository, format, generation }: WaitingJob, key: string | undefined): Promise<void> {
    if (key === undefined || generation !== repository.generation || repository.isReused(key)) return;
    await this.#parts.responses.refer(repository.id, key, format);
  }

  #turnedAway({ job }: LeadTask, led: LedFetch): PlannedFetch {
    this.#parts.fetches.turnAway(led.fetch);
    led.close();
    return { plan: job.gone.aborted ? { kind: "gone" } : { kind: "busy" }, confirm: false };
  }

  /** Milliseconds that the request may still wait. */
  #left({ deadline }: LeadTask): number {
    return deadline - this.#parts.clock.monotonic();
  }
}

/** Ends a fetch without a response. Requests that joined it look again, too. */
function leftFor(led: LedFetch, shared: number | undefined): LookAgain {
  led.close();
  led.reader.leave();
  return { shared };
}

/** Bytes of a response, if the code host says how many there are. */
function lengthOf({ headers }: UpstreamResponse): number | undefined {
  const length = headers["content-length"];
  return typeof length === "string" && /^\d{1,15}$/.test(length) ? Number(length) : undefined;
}

/** Relays the code host's response to the leading client only. @param release releases its place */
function relayed(led: LedFetch, response: UpstreamResponse, release: () => void): PlannedFetch {
  led.close();
  const end = (): void => {
    led.reader.leave();
    release();
  };
  return { plan: { kind: "relay", response, end }, confirm: false };
}
