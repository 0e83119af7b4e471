import type { Clock } from "@devplat/base";
import { decodeLsRefsResponse, type RefLine } from "@devplat/git-protocol";
import type { AccessCheck } from "../../access/access-check.ts";
import type { Refusal } from "../../access/access-request.ts";
import type { EnsureResult, ObjectEnsurer } from "../../cache/ensuring/object-ensurer.ts";
import type { GitCache } from "../../cache/git-cache.ts";
import { shownName } from "../../field-path.ts";
import { problemOf, type Problem } from "../../http/request/problem.ts";
import type { RequestContext } from "../../http/request/request-context.ts";
import { SANDBOX_HEADERS, answerProblem } from "../../http/request/text-answer.ts";
import type { EnsureOutcome, Metrics } from "../../telemetry/metrics.ts";
import { GitError, isGone } from "../../upstream/errors.ts";
import { isRefusal } from "../../upstream/response-status.ts";
import type { Upstream, UpstreamResponse } from "../../upstream/upstream.ts";
import type { CachedRequest, RepositoryRequest } from "../git-request.ts";
import { relay } from "../relay.ts";
import { MAX_WAIT_SECONDS, type EnsureBodies, type EnsureRequest } from "./ensure-body.ts";
import { ensureObjects } from "./ensure-objects.ts";
import { answerOfRefusal, askForRefs, lsRefsOf, type RefusalAnswer } from "./own-refs.ts";

/** Seconds after which a caller should repeat a request whose time was over. */
const RETRY_AFTER_SECONDS = "5";

/** Refs that a message names. The problem document has all of them. */
const MAX_LISTED = 10;

export interface EnsureCommandParts {
  readonly upstream: Upstream;
  readonly access: AccessCheck;
  readonly cache: GitCache;
  readonly ensurer: ObjectEnsurer;
  readonly bodies: EnsureBodies;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** For requests of the service itself. */
  readonly userAgent: string;
}

/** A request, as it is once the code host has authorized it. */
interface Authorized {
  readonly request: CachedRequest;
  readonly wanted: EnsureRequest;
  readonly sentAt: number;
  /** Milliseconds that the caller still waits. */
  readonly waitMs: number;
}

/** The response to a request, and its outcome. */
type Answer =
  | {
      readonly kind: "state";
      readonly status: 200 | 202;
      readonly outcome: "ready" | "pending";
      readonly fetched: boolean;
    }
  | { readonly kind: "problem"; readonly outcome: EnsureOutcome; readonly problem: Problem }
  | { readonly kind: "relay"; readonly response: UpstreamResponse }
  | { readonly kind: "gone" };

/**
 * Answers `POST …/svc/ensure`: brings the objects of some refs here, so that the jobs of a build that starts now are
 * served from the cache. The code host decides who may ask. A caller that it refuses learns nothing of the cache, not even
 * whether the repository is listed.
 */
export class EnsureCommand {
  readonly #parts: EnsureCommandParts;

  constructor(parts: EnsureCommandParts) {
    this.#parts = parts;
  }

  /** @throws GitError */
  async handle(request: RepositoryRequest): Promise<void> {
    const { context } = request;
    const { metrics } = this.#parts;
    try {
      await this.#carryOut(request, await this.#answer(request));
    } catch (error) {
      if (isGone(error)) throw error;
      const problem = problemOf(error);
      context.concludeCache(problem === undefined ? "error" : "rejected");
      metrics.ensured(problem === undefined ? "error" : "rejected");
      if (problem === undefined) throw error;
      answerProblem(context, problem);
    }
  }

  async #answer(request: RepositoryRequest): Promise<Answer> {
    const { access, clock } = this.#parts;
    const { policy } = request;
    const startedAt = clock.monotonic();
    const wanted = await this.#parts.bodies.read(request.context);
    const isCached = policy?.enabled === true;
    const { refs, authorization } = await askForRefs(access, request, {
      format: wanted.format,
      prefixes: [...wanted.refs.keys()],
      // One limit for all repositories: how long a caller waits must not tell whether a repository is listed.
      timeoutSeconds: MAX_WAIT_SECONDS,
    });
    if (refs.kind === "refused") return this.#refused(refs);
    if (!isCached || policy === undefined) return notCached(policy !== undefined);
    const shown = shownRefs(refs.body);
    const moved = movedRefs(wanted.refs, shown);
    if (moved !== undefined) return moved;
    return await this.#ensure({
      request: { ...request, policy, authorization },
      wanted,
      sentAt: refs.sentAt,
      waitMs: startedAt + wanted.waitMs - clock.monotonic(),
    });
  }

  async #ensure({ request, wanted, sentAt, waitMs }: Authorized): Promise<Answer> {
    const { format } = wanted;
    const oids = [...new Set(wanted.refs.values())];
    const { result, sentAt: authorizedAt } = await ensureObjects(
      this.#parts,
      request,
      { format, oids, sentAt },
      waitMs,
    );
    const answer = this.#answerOf(result);
    if (answer.kind !== "state") return answer;
    // The caller may have waited long. What it learns now is as much cached data as a pack is.
    const names = [...wanted.refs.keys()];
    const confirmed = await this.#parts.access.confirm(request, lsRefsOf(format), names, authorizedAt);
    return confirmed.kind === "refused" ? this.#refused(confirmed) : answer;
  }

  #answerOf(result: EnsureResult): Answer {
    switch (result.kind) {
      case "ready":
        return { kind: "state", status: 200, outcome: "ready", fetched: result.fetched };
      case "pending":
        return { kind: "state", status: 202, outcome: "pending", fetched: true };
      case "gone":
        return { kind: "gone" };
      case "refused":
        return this.#refused({ kind: "refused", response: result.response });
      case "removed":
        return notFound("The repository was removed from the list, or disabled, during the request");
      case "busy": {
        const detail = "Too many fetches from the code host are waiting";
        const headers = { "Retry-After": RETRY_AFTER_SECONDS };
        return { kind: "problem", outcome: "error", problem: { code: "busy", detail, headers } };
      }
      default: {
        const detail =
          result.kind === "too_big"
            ? "The repository is larger than cache.fill_max_mb"
            : "The objects could not be stored";
        return { kind: "problem", outcome: "error", problem: { code: "cannot_store", detail } };
      }
    }
  }

  #refused(refusal: Refusal): RefusalAnswer {
    return answerOfRefusal(refusal, this.#parts.upstream.name);
  }

  async #carryOut(request: RepositoryRequest, answer: Answer): Promise<void> {
    const { metrics } = this.#parts;
    const { context } = request;
    switch (answer.kind) {
      case "gone":
        throw new GitError("client_gone", 499, "the client left");
      case "problem":
        context.concludeCache(answer.outcome === "error" ? "error" : "rejected");
        metrics.ensured(answer.outcome);
        answerProblem(context, answer.problem);
        return;
      case "relay": {
        const outcome = isRefusal(answer.response.status) ? "rejected" : "error";
        context.concludeCache(outcome);
        metrics.ensured(outcome);
        await relay(context, answer.response, request.relay);
        return;
      }
      case "state":
        context.concludeCache(answer.fetched ? "miss" : "hit");
        metrics.ensured(answer.outcome);
        sendState(context, answer.status);
    }
  }
}

function sendState(context: RequestContext, status: 200 | 202): void {
  const body = JSON.stringify({ state: status === 200 ? "ready" : "pending" });
  context.response.writeHead(status, {
    ...SANDBOX_HEADERS,
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    "X-Request-Id": context.id,
    "Server-Timing": context.serverTiming,
    ...(status === 202 ? { "Retry-After": RETRY_AFTER_SECONDS } : {}),
  });
  context.response.end(body);
}

function notCached(isListed: boolean): Answer {
  return notFound(
    isListed
      ? "Caching of this repository is disabled"
      : "This repository is not in the list of cached repositories",
  );
}

function notFound(detail: string): Answer {
  return { kind: "problem", outcome: "rejected", problem: { code: "not_found", detail } };
}

/** @throws GitError if there are too many refs to be kept */
function shownRefs(body: Buffer | undefined): ReadonlyMap<string, RefLine> {
  if (body !== undefined) return new Map(decodeLsRefsResponse(body).map((line) => [line.name, line]));
  throw new GitError("upstream_foreign", 502, "the code host shows too many refs with these names");
}

/** The response if the code host shows other objects: each ref that differs, with the object that it shows. */
function movedRefs(
  wanted: ReadonlyMap<string, string>,
  shown: ReadonlyMap<string, RefLine>,
): Answer | undefined {
  const moved = [...wanted].filter(([name, oid]) => {
    const line = shown.get(name);
    return line?.oid !== oid && line?.peeled !== oid;
  });
  if (moved.length === 0) return undefined;
  const refs = Object.fromEntries(moved.map(([name]) => [name, shown.get(name)?.oid ?? null]));
  const listed = moved.slice(0, MAX_LISTED).map(([name]) => shownName(name));
  const more = moved.length > listed.length ? `, and ${moved.length - listed.length} more` : "";
  const detail = `The code host shows other objects, or none, for: ${listed.join(", ")}${more}`;
  return { kind: "problem", outcome: "moved", problem: { code: "ref_moved", detail, refs } };
}
