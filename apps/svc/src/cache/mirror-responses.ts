import type { ObjectFormat } from "@devplat/git-protocol";
import {
  begin,
  type OwnAnswers,
  type OwnRequest,
  type OwnVerdict,
  type PackStores,
} from "@devplat/git-mirror";
import type { ObjectLookup } from "../access/authorization.ts";
import { isStorable, type RepositoryId } from "../access/repository-id.ts";
import type { UpstreamAnswer } from "../upstream/upstream.ts";
import type { CachedRepository } from "./cached-repository.ts";
import { AnswerBroke, AskFailed, type BaseFetch, type BaseFetches } from "./coalescing/base-fetch.ts";
import { within } from "./coalescing/keep-alive.ts";
import type { FetchJob } from "./fetch-plan.ts";
import type { MirrorFiller } from "./filling/mirror-filler.ts";
import type { MirrorFaults } from "./mirror-faults.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import { StoredDataDamaged } from "./responses/block-sums.ts";

/** Milliseconds in which the code host must begin to give what a mirror lacks; then the request itself is forwarded. */
export const FIRST_BYTE_MS = 5000;

/**
 * Result of answering a request from the mirror.
 * - `begun`: a response whose first chunk is made, or, with `keptAlive`, keepalive packets until it is. `asked`: with
 *   objects that the code host gave for it.
 * - `none`: the code host must be asked. `late`: a fetch goes on for the mirror; resolves with true if it shows that the
 *   code host has another history now. `failed`: the mirror does not work either.
 * - `relay`: the code host's response, which is not a fetch response.
 * - `unrelated`: the code host's history shares nothing with the mirror, which must be removed.
 * - `busy`: no turn came in time.
 */
export type SettledAnswer =
  | {
      readonly kind: "begun";
      readonly chunks: AsyncIterable<Buffer>;
      readonly asked: boolean;
      readonly keptAlive?: true;
    }
  | { readonly kind: "relay"; readonly answer: UpstreamAnswer }
  | { readonly kind: "none"; readonly late?: Promise<boolean> }
  | { readonly kind: "failed" | "unrelated" | "busy" };

/** The same, or `pending` while the code host is asked; `leads`: on behalf of this request. */
export type OwnAnswer =
  | SettledAnswer
  | { readonly kind: "pending"; readonly leads: boolean; readonly pending: Promise<SettledAnswer> };

export interface MirrorResponsesParts {
  readonly stores: PackStores;
  readonly responder: OwnAnswers<CachedRepository>;
  readonly base: BaseFetches;
  readonly filler: MirrorFiller;
  readonly repositories: RepositoryRegistry;
  readonly faults: MirrorFaults;
  /** Milliseconds in which the code host must begin to give what a mirror lacks. */
  readonly firstByteMs: number;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/**
 * Responses made from mirrors. Nothing in here throws what a mirror threw: a mirror that does not work is logged, a
 * damaged one repaired, and the code host answers.
 */
export class MirrorResponses implements ObjectLookup {
  readonly #parts: MirrorResponsesParts;

  constructor(parts: MirrorResponsesParts) {
    this.#parts = parts;
  }

  async areReachable(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#parts.repositories.of(id);
    try {
      return await this.#parts.responder.maySee(repository, format, oids);
    } catch (error) {
      await this.#parts.faults.failed(repository, error);
      return false;
    }
  }

  async areHere(id: RepositoryId, format: ObjectFormat, oids: readonly string[]): Promise<boolean> {
    const repository = this.#parts.repositories.of(id);
    try {
      const view = await this.#parts.stores
        .of(id)
        .viewSoon(format, (error) => void this.#parts.faults.failed(repository, error));
      if (view === undefined) return false;
      try {
        return await this.#parts.responder.holdsAll(view.graph, oids);
      } finally {
        view.release();
      }
    } catch (error) {
      await this.#parts.faults.failed(repository, error);
      return false;
    }
  }

  /**
   * A response from the mirror, if it can give one. Objects that it lacks may be fetched from the code host first. Which
   * ones is decided before the promise fulfils; the fetch itself is the promise in `pending`.
   *
   * @param waitMs maximum time to wait for a turn at the code host
   * @throws in `pending`: the error of the request to the code host
   */
  async answer(job: FetchJob, signal: AbortSignal, waitMs: number): Promise<OwnAnswer> {
    const { repository, fetch, format } = job;
    if (fetch === undefined || !isStorable(repository.id)) return { kind: "none" };
    const request = { repository, fetch, format };
    try {
      const store = this.#parts.stores.of(repository.id);
      let verdict = await this.#parts.responder.judge(request);
      if (verdict.kind === "cannot" && (await this.#parts.filler.finished(job))) {
        verdict = await this.#parts.responder.judge(request);
      }
      if (verdict.kind === "cannot") return { kind: "none" };
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal, false);
      const running = this.#parts.base.running(job, verdict);
      const fetching = running ?? this.#parts.base.fetch(job, verdict, store, waitMs);
      const pending = this.#parts.stores.urgency.during(
        this.#afterFetch(job, request, verdict, fetching, running === undefined, signal),
      );
      return { kind: "pending", leads: running === undefined, pending };
    } catch (error) {
      return await this.#noAnswer(repository, error, signal);
    }
  }

  async #begin(
    request: OwnRequest<CachedRepository>,
    verdict: Extract<OwnVerdict, { kind: "serve" }>,
    signal: AbortSignal,
    asked: boolean,
  ): Promise<SettledAnswer> {
    const { chunks } = await begin(this.#parts.responder.answer(request, verdict, signal), (error) => {
      if (!signal.aborted) void this.#parts.faults.failed(request.repository, error);
      return new StoredDataDamaged("stored objects cannot be read", error);
    });
    return { kind: "begun", chunks, asked };
  }

  /** The response when the fetch of the missing objects is over. */
  async #afterFetch(
    job: FetchJob,
    request: OwnRequest<CachedRepository>,
    lacks: Extract<OwnVerdict, { kind: "lacks" }>,
    fetching: BaseFetch,
    leads: boolean,
    signal: AbortSignal,
  ): Promise<SettledAnswer> {
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
      // A refusal is for the client whose credential was refused. The others ask with their own.
      if (outcome.kind === "refused") {
        return leads ? { kind: "relay", answer: outcome.answer } : { kind: "none" };
      }
      if (outcome.kind === "unrelated") return { kind: "unrelated" };
      if (generation !== repository.generation || identity !== repository.tips.identity)
        return { kind: "none" };
      // Objects of another fill were not given to this request.
      const allowed = new Set(outcome.asked ? lacks.wants : []);
      const verdict = await this.#parts.responder.judge(request, allowed);
      if (verdict.kind === "serve") return await this.#begin(request, verdict, signal, outcome.asked);
      if (verdict.kind === "lacks") verdict.view.release();
      return { kind: "none" };
    } catch (error) {
      if (error instanceof AskFailed && leads) throw error.cause;
      if (error instanceof AnswerBroke && leads) {
        this.#parts.faults.once(repository, error.cause, "the objects of an answer cannot be stored");
        this.#parts.faults.suspect(repository);
      }
      if (error instanceof AskFailed || error instanceof AnswerBroke) return { kind: "none" };
      return await this.#noAnswer(repository, error, signal);
    } finally {
      lacks.view.release();
    }
  }

  /** Nobody waits for the fetch any more, which goes on for the mirror. Never rejects. */
  async #isUnrelated(repository: CachedRepository, outcome: BaseFetch["outcome"]): Promise<boolean> {
    const { generation } = repository;
    try {
      const { kind } = await outcome;
      return kind === "unrelated" && generation === repository.generation;
    } catch (error) {
      if (generation === repository.generation && !this.#parts.stopping.aborted) {
        this.#parts.faults.once(repository, error, "the objects of an answer cannot be stored");
      }
      return false;
    }
  }

  /** Whether the code host begins to answer in time, or the fetch is over. */
  async #hasBegun({ outcome, firstByte }: BaseFetch): Promise<boolean> {
    const over = outcome.then(
      () => undefined,
      () => undefined,
    );
    const begun = Promise.race([over, firstByte]).then(() => true);
    return (await within(begun, this.#parts.firstByteMs)) === true;
  }

  async #noAnswer(
    repository: CachedRepository,
    error: unknown,
    signal: AbortSignal,
  ): Promise<{ readonly kind: "none" | "failed" }> {
    if (signal.aborted) return { kind: "none" };
    await this.#parts.faults.failed(repository, error);
    return { kind: "failed" };
  }
}
