import { within } from "@devplat/base";
import type { ObjectFormat } from "@devplat/git-protocol";
import {
  primeStream,
  type LookupRequest,
  type MirrorLookup,
  type MirrorRequest,
  type MirrorResponder,
  type Mirrors,
  type MirrorThreads,
  type MissingWants,
  type ResponseChunks,
  type Servability,
  type Servable,
} from "@devplat/git-mirror";
import type { ObjectLookup } from "../access/authorization.ts";
import { isStorable, type RepositoryId } from "../access/repository-id.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";
import type { CachedRepository } from "./cached-repository.ts";
import {
  ResponseBroken,
  RequestFailed,
  type MissingObjectFetch,
  type MissingObjectFetches,
} from "./coalescing/missing-object-fetch.ts";
import { canKeepAlive } from "./coalescing/keep-alive.ts";
import type { AdmissionQueue } from "./admission/admission-queue.ts";
import { NotAdmitted, admitted } from "./admission/admit-response.ts";
import type { WaitingJob } from "./fetch-plan.ts";
import type { MirrorFiller } from "./filling/mirror-filler.ts";
import type { MirrorFaults } from "./mirror-faults.ts";
import type { MirrorSource } from "./mirror-source.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import { StoredDataDamaged } from "./responses/block-sums.ts";

/** Milliseconds in which the code host must begin to send the missing objects. After them the request is forwarded. */
export const FIRST_BYTE_MS = 5000;
/** Milliseconds in which a shared source mostly says that it has nothing new. After them the client gets keepalive packets. */
const SOURCE_LOOK_MS = 500;

/**
 * Result of answering a request from the mirror.
 * - `begun`: a response whose first chunk is made, or, with `keptAlive`, keepalive packets until it is. `fetched`: it has
 *   objects that were fetched from the code host for it. `hydrated`: it has objects that were read from the bucket for it.
 * - `none`: the request must go to the code host. `late`: a fetch goes on for the mirror; resolves with true if it shows
 *   that the code host has another history now.
 * - `failed`: the same, because the mirror does not work.
 * - `relay`: the code host's response, which is not a fetch response.
 * - `unrelated`: the code host's history shares nothing with the mirror, which must be removed.
 * - `busy`: a queue gave no place in time.
 */
export type MirrorOutcome =
  | {
      readonly kind: "begun";
      readonly chunks: ResponseChunks;
      readonly fetched: boolean;
      readonly hydrated?: boolean;
      readonly keptAlive?: true;
    }
  | { readonly kind: "relay"; readonly response: UpstreamResponse }
  | { readonly kind: "none"; readonly late?: Promise<boolean> }
  | { readonly kind: "failed" | "unrelated" | "busy" };

/**
 * The same, or `pending` while objects are fetched. `leads`: this request started the fetch. `hydrates`: a shared source is
 * read first.
 */
export type MirrorAttempt =
  | MirrorOutcome
  | {
      readonly kind: "pending";
      readonly leads: boolean;
      readonly hydrates?: true;
      readonly pending: Promise<MirrorOutcome>;
    };

export interface MirrorResponsesParts {
  readonly mirrors: Mirrors;
  readonly lookup: MirrorLookup;
  readonly responder: MirrorResponder;
  readonly threads: Pick<MirrorThreads, "urgency">;
  readonly missingObjects: MissingObjectFetches;
  /** Packs that instances share. Undefined: the code host has the only ones. */
  readonly source: MirrorSource | undefined;
  readonly filler: MirrorFiller;
  readonly repositories: RepositoryRegistry;
  readonly faults: MirrorFaults;
  /** Heavy responses wait in it for a place. */
  readonly queue: AdmissionQueue;
  /** `cache.heavy_mb`, in bytes. */
  readonly heavyBytes: () => number;
  /** Milliseconds in which the code host must begin to send the missing objects. */
  readonly firstByteMs: number;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/**
 * Responses made from mirrors. Errors of mirrors are not thrown: they are logged, damaged mirrors are repaired, and the
 * code host answers.
 */
export class MirrorResponses implements ObjectLookup {
  readonly #parts: MirrorResponsesParts;

  constructor(parts: MirrorResponsesParts) {
    this.#parts = parts;
  }

  async areReachable(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#parts.repositories.of(id);
    try {
      return await this.#parts.lookup.areReachable(this.#lookup(repository, format, oids), repository.tips);
    } catch (error) {
      await this.#parts.faults.failed(repository, error);
      return false;
    }
  }

  async areHere(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#parts.repositories.of(id);
    try {
      return await this.#parts.lookup.areHere(this.#lookup(repository, format, oids));
    } catch (error) {
      await this.#parts.faults.failed(repository, error);
      return false;
    }
  }

  /** Sizes of the objects, if all of them are here and reachable from refs that the code host showed recently. */
  async sizes(
    id: RepositoryId,
    format: ObjectFormat,
    oids: readonly string[],
  ): Promise<readonly number[] | undefined> {
    const repository = this.#parts.repositories.of(id);
    if (this.#parts.faults.isSuspected(repository)) return undefined;
    try {
      return await this.#parts.lookup.sizes(this.#lookup(repository, format, oids), repository.tips);
    } catch (error) {
      await this.#parts.faults.failed(repository, error);
      return undefined;
    }
  }

  /**
   * A response from the mirror, if it can give one. Objects that it lacks may be fetched from the code host first. Which
   * ones is decided before the promise fulfils; the fetch itself is the promise in `pending`.
   *
   * @param waitMs maximum time to wait for a turn at the code host
   * @throws in `pending`: the error of the request to the code host
   */
  async respond(job: WaitingJob, signal: AbortSignal, waitMs: number): Promise<MirrorAttempt> {
    const { repository, fetch, format } = job;
    if (fetch === undefined || !isStorable(repository.id)) return { kind: "none" };
    const { responder, filler, threads, faults, source } = this.#parts;
    if (faults.isSuspected(repository)) return { kind: "failed" };
    const { id, tips } = repository;
    const onLateFailure = (error: unknown): void => void faults.failed(repository, error);
    const request: MirrorRequest = { id, fetch, format, tips, onLateFailure };
    try {
      let found = await responder.check(request);
      if (found.kind === "unservable" && (await filler.finished(job))) found = await responder.check(request);
      if (found.kind !== "servable" && source !== undefined) {
        const refreshed = source.refresh(id, canKeepAlive(fetch) ? Infinity : this.#parts.firstByteMs);
        const soon = await within(refreshed, SOURCE_LOOK_MS);
        if (soon !== false) {
          if (found.kind === "missing") found.view.release();
          const pending = threads.urgency.during(this.#afterRefresh(job, request, refreshed, signal, waitMs));
          return { kind: "pending", leads: true, hydrates: true, pending };
        }
      }
      return await this.#answer(job, request, found, signal, waitMs);
    } catch (error) {
      return await this.#unanswered(repository, error, signal);
    }
  }

  /** The response from the mirror as it is, or after a fetch of the missing objects. */
  async #answer(
    job: WaitingJob,
    request: MirrorRequest,
    found: Servability,
    signal: AbortSignal,
    waitMs: number,
  ): Promise<MirrorAttempt> {
    const { mirrors, missingObjects, threads } = this.#parts;
    const { id } = job.repository;
    if (found.kind === "unservable") return { kind: "none" };
    if (found.kind === "servable") {
      return await this.#begin({ ...job, fetch: request.fetch }, found, signal, false);
    }
    const running = missingObjects.running(job, found);
    const fetching = running ?? missingObjects.fetch(job, found, mirrors.of(id), waitMs);
    const leads = running === undefined;
    const pending = threads.urgency.during(this.#afterFetch(job, request, found, fetching, leads, signal));
    return { kind: "pending", leads, pending };
  }

  /** The response when the mirror has the packs that other instances share. */
  async #afterRefresh(
    before: WaitingJob,
    request: MirrorRequest,
    refreshed: Promise<boolean>,
    signal: AbortSignal,
    waitMs: number,
  ): Promise<MirrorOutcome> {
    const { repository } = before;
    const { identity } = repository.tips;
    const hydrated = await refreshed;
    // If the bucket showed a higher epoch, the mirror has only what came after that purge.
    if (identity !== repository.tips.identity) return { kind: "none" };
    const job = { ...before, generation: repository.generation };
    let attempt: MirrorAttempt;
    try {
      const found = hydrated
        ? await this.#checkArrived(job, request)
        : await this.#parts.responder.check(request);
      attempt = await this.#answer(job, request, found, signal, waitMs);
    } catch (error) {
      return await this.#unanswered(repository, error, signal);
    }
    const outcome = attempt.kind === "pending" ? await attempt.pending : attempt;
    if (outcome.kind !== "begun") return outcome;
    // If another request leads the fetch, this one is not counted as a miss.
    const fetched = outcome.fetched && attempt.kind === "pending" && attempt.leads;
    return { ...outcome, fetched, hydrated: hydrated && !fetched };
  }

  /**
   * Checks the mirror after objects of another instance have arrived. Refs that this instance knows may be older than they are.
   * Then the code host is asked for its refs, so that they decide.
   */
  async #checkArrived(job: WaitingJob, request: MirrorRequest): Promise<Servability> {
    const { responder } = this.#parts;
    const { repository, authorization } = job;
    const { generation } = repository;
    const { identity } = repository.tips;
    const found = await responder.check(request);
    if (found.kind !== "unservable" || !(await authorization.recheckWants())) return found;
    // Refs that share nothing with those before them may be of another repository.
    if (generation !== repository.generation || identity !== repository.tips.identity) return found;
    return await responder.check(request);
  }

  /** Begins a response. If it is heavy, it waits for a place. */
  async #begin(
    { repository, fetch, wait }: WaitingJob & { readonly fetch: NonNullable<WaitingJob["fetch"]> },
    servable: Servable,
    signal: AbortSignal,
    fetched: boolean,
  ): Promise<MirrorOutcome> {
    const { responder, queue, heavyBytes, faults } = this.#parts;
    let weight = 0;
    const response = responder.respond(fetch, servable, signal, (bytes) => void (weight = bytes));
    const group = repository.id.key;
    const made = admitted({ response, weight: () => weight, group, wait, signal }, queue, heavyBytes);
    try {
      const chunks = await primeStream(made, (error) => {
        if (!signal.aborted) void faults.failed(repository, error);
        return new StoredDataDamaged("objects of the mirror cannot be read", error);
      });
      return { kind: "begun", chunks, fetched };
    } catch (error) {
      if (error instanceof NotAdmitted) return { kind: "busy" };
      throw error;
    }
  }

  #lookup(repository: CachedRepository, format: ObjectFormat, oids: readonly string[]): LookupRequest {
    const onLateFailure = (error: unknown): void => void this.#parts.faults.failed(repository, error);
    return { id: repository.id, format, oids, onLateFailure };
  }

  /** The response when the fetch of the missing objects is over. */
  async #afterFetch(
    job: WaitingJob,
    request: MirrorRequest,
    missing: MissingWants,
    fetching: MissingObjectFetch,
    leads: boolean,
    signal: AbortSignal,
  ): Promise<MirrorOutcome> {
    const { repository } = job;
    const { generation } = repository;
    const { identity } = repository.tips;
    try {
      if (!(await this.#hasBegun(fetching))) {
        return leads
          ? { kind: "none", late: this.#isUnrelated(repository, fetching.outcome) }
          : { kind: "none" };
      }
      const outcome = await fetching.outcome;
      if (outcome.kind === "busy") return { kind: "busy" };
      // A refusal is for the client whose credential was refused. The others send their own requests.
      if (outcome.kind === "refused") {
        return leads ? { kind: "relay", response: outcome.response } : { kind: "none" };
      }
      if (outcome.kind === "unrelated") return { kind: "unrelated" };
      if (outcome.kind === "removed") return { kind: "none" };
      if (generation !== repository.generation || identity !== repository.tips.identity)
        return { kind: "none" };
      // Objects of another fill were not given to this request.
      const given = new Set(outcome.fetched ? missing.wants : []);
      const isFromOther = outcome.shared && !outcome.fetched;
      const found = isFromOther
        ? await this.#checkArrived(job, request)
        : await this.#parts.responder.check(request, given);
      if (found.kind === "servable") {
        return await this.#begin({ ...job, fetch: request.fetch }, found, signal, outcome.fetched);
      }
      if (found.kind === "missing") found.view.release();
      return { kind: "none" };
    } catch (error) {
      if (error instanceof RequestFailed && leads) throw error.cause;
      if (error instanceof ResponseBroken && leads) {
        this.#parts.faults.once(repository, error.cause, "the objects of a response cannot be stored");
        this.#parts.faults.suspect(repository);
      }
      if (error instanceof RequestFailed || error instanceof ResponseBroken) return { kind: "none" };
      return await this.#unanswered(repository, error, signal);
    } finally {
      missing.view.release();
    }
  }

  /** Result of a fetch that goes on for the mirror when no request waits for it. Never rejects. */
  async #isUnrelated(repository: CachedRepository, outcome: MissingObjectFetch["outcome"]): Promise<boolean> {
    const { generation } = repository;
    try {
      const { kind } = await outcome;
      return kind === "unrelated" && generation === repository.generation;
    } catch (error) {
      if (generation === repository.generation && !this.#parts.stopping.aborted) {
        this.#parts.faults.once(repository, error, "the objects of a response cannot be stored");
      }
      return false;
    }
  }

  /** Whether the code host begins to answer in time, or the fetch is over. */
  async #hasBegun({ outcome, firstByte }: MissingObjectFetch): Promise<boolean> {
    const over = outcome.then(
      () => undefined,
      () => undefined,
    );
    const begun = Promise.race([over, firstByte]).then(() => true);
    return (await within(begun, this.#parts.firstByteMs)) === true;
  }

  async #unanswered(
    repository: CachedRepository,
    error: unknown,
    signal: AbortSignal,
  ): Promise<{ readonly kind: "none" | "failed" }> {
    if (signal.aborted) return { kind: "none" };
    await this.#parts.faults.failed(repository, error);
    return { kind: "failed" };
  }
}
