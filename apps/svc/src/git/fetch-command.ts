import { messageOf, type Logger } from "@devplat/base";
import {
  decodeLsRefsResponse,
  encodeErrorLine,
  encodeSideBandError,
  requestObjectFormat,
  type CommandRequest,
  type EncodedCommand,
  type FetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import type { CachedRepository } from "../cache/cached-repository.ts";
import type { FetchPlan } from "../cache/fetch-plan.ts";
import type { GitCache } from "../cache/git-cache.ts";
import { FlightCut } from "../cache/flight.ts";
import type { GrantKey } from "../cache/grants.ts";
import type { OpenResponse } from "../cache/response-files.ts";
import { isStorableRequest } from "../cache/response-key.ts";
import { SURVEY_PREFIXES } from "../cache/visibility.ts";
import type { FetchResult } from "../telemetry/metrics.ts";
import { askFeatures, featuresOf } from "./advertised-features.ts";
import type { CommandAnswer } from "./command-answer.ts";
import { GitError, isGone } from "./errors.ts";
import type { Gate } from "./gate.ts";
import { isRefusal, type CachedRequest } from "./git-request.ts";
import type { KnownBodies } from "./known-bodies.ts";
import { commandHeaders } from "./ls-refs-command.ts";
import type { Outcomes } from "./outcome.ts";
import { isUploadPackResult, kept, type RefAnswer } from "./ref-questions.ts";
import { sendFile, sendFlight } from "./send-stored.ts";
import type { Upstream, UpstreamAnswer } from "./upstream.ts";

/** Seconds after which a client that found no turn should come again. */
const RETRY_AFTER_SECONDS = "10";

export interface FetchCommandOptions {
  readonly upstream: Upstream;
  readonly gate: Gate;
  readonly cache: GitCache;
  readonly outcomes: Outcomes;
  readonly known: KnownBodies;
  readonly logger: Logger;
}

/** One `fetch` of a body, on its way through the gate. */
export interface FetchCall {
  readonly request: CachedRequest;
  readonly repository: CachedRepository;
  readonly key: GrantKey;
  readonly command: EncodedCommand;
  readonly answer: CommandAnswer;
  /** Whether an `ls-refs` before it in the same body got a yes. */
  readonly yesInBody: boolean;
}

type CachedAnswer = UpstreamAnswer & { readonly isFetchAnswer: boolean };
type Plan = FetchPlan<CachedAnswer>;

/** Names that a request leaves to the server to resolve, and what they stand for now. */
interface Resolution {
  readonly wantedRefs: ReadonlyMap<string, string>;
  /** Lines that go into the key. */
  readonly lines: readonly string[];
}

const NOTHING_TO_RESOLVE: Resolution = { wantedRefs: new Map(), lines: [] };

/** Answers a `fetch`: through the gate, then from a stored answer, a shared one, or the code host's own. */
export class FetchCommand {
  readonly #options: FetchCommandOptions;

  constructor(options: FetchCommandOptions) {
    this.#options = options;
  }

  /** @returns whether further commands of the body may follow. @throws GitError if the answer has not begun */
  async run(call: FetchCall): Promise<boolean> {
    const { exchange } = call.request;
    try {
      return await this.#run(call);
    } catch (error) {
      // A fetch that ends without an answer counts too; one that was counted has its state. Who leaves while it is not
      // clear yet where the answer will come from got nothing from the cache.
      if (!exchange.cacheCounted) this.#count(call, isGone(error) ? "miss" : "error");
      throw error;
    }
  }

  async #run(call: FetchCall): Promise<boolean> {
    const { gate, cache, known } = this.#options;
    const { request, repository, key, command } = call;
    const { exchange } = request;
    const startedAt = performance.now();
    const passedAt = gate.now();
    const format = requestObjectFormat(command.request);
    const fetch = known.fetchOf(command.request, format ?? "sha1");
    if (!call.yesInBody) {
      const no = await gate.pass(key, request, command.request, prefixesFor(repository, fetch));
      exchange.stage("gate", startedAt);
      if (no !== undefined) return await this.#refused(call, no);
    }
    const isOurs = format !== undefined && (await this.#isAdvertised(call, fetch));
    const resolution =
      isOurs && isStorableRequest(fetch) ? await this.#resolve(call, fetch) : NOTHING_TO_RESOLVE;
    if ("kind" in resolution) return await this.#refused(call, resolution);
    const plannedAt = performance.now();
    const plan = await cache.plan<CachedAnswer>({
      repository,
      key: isOurs ? await this.#keyOf(call, fetch, format, resolution) : undefined,
      wants: fetch.wants,
      wantedRefs: resolution.wantedRefs,
      format: format ?? "sha1",
      fetch: isOurs && isPlain(command.request) ? fetch : undefined,
      gone: exchange.gone,
      open: (signal) => this.#ask(call, command.bytes, signal),
      ask: (body, signal) => this.#ask(call, body, signal),
      learnRefs: async (prefixes) => {
        await gate.ask(key, request, command.request, prefixes);
      },
      withBody: (answer, body) => ({ ...kept(answer, body), isFetchAnswer: false }),
    });
    exchange.timing("plan", performance.now() - plannedAt);
    return await this.#carryOut(call, plan, passedAt);
  }

  async #carryOut(call: FetchCall, plan: Plan, passedAt: number): Promise<boolean> {
    const { gate } = this.#options;
    if (plan.kind === "gone") throw new GitError("client_gone", 499, "the client left");
    if (plan.kind === "busy") {
      throw new GitError("busy", 503, "too many fetches from the code host are waiting; try again", {
        headers: { "Retry-After": RETRY_AFTER_SECONDS },
      });
    }
    if (plan.kind === "relay") return await this.#relayed(call, plan.answer, plan.end);
    if (plan.kind !== "lead" && gate.refusedSince(call.key, passedAt)) {
      // Another request was refused meanwhile, perhaps for a reason of its own: only the code host knows.
      const { identity } = call.repository.tips;
      const leave = async (): Promise<void> =>
        plan.kind === "file" ? await plan.file.close() : plan.reader.leave();
      const again = await gate
        .ask(call.key, call.request, call.command.request, ["HEAD"])
        .catch(async (error: unknown) => {
          await leave();
          throw error;
        });
      if (again.kind === "no") {
        await leave();
        return await this.#refused(call, again);
      }
      if (identity !== call.repository.tips.identity) {
        await leave();
        return await this.run(call);
      }
    }
    if (plan.kind === "file") return await this.#fromFile(call, plan.file);
    return await this.#fromFlight(call, plan);
  }

  async #fromFile(call: FetchCall, file: OpenResponse): Promise<boolean> {
    const { answer } = call;
    try {
      answer.beginOwn("hit", file.size);
      const bytes = await sendFile(file, answer.sink);
      call.request.exchange.delivered = true;
      this.#options.cache.counted(call.repository, "hit", "response", bytes);
      this.#count(call, "hit");
      return true;
    } catch (error) {
      this.#count(call, isGone(error) ? "hit" : "error");
      throw error;
    } finally {
      await file.close();
    }
  }

  async #fromFlight(call: FetchCall, plan: Extract<Plan, { kind: "lead" | "follow" }>): Promise<boolean> {
    const { answer, request } = call;
    const { reader } = plan;
    const result = plan.kind === "lead" ? plan.result : "hit";
    const failed = plan.kind === "lead" && plan.failed;
    try {
      const bytes = await sendFlight(reader, answer.sink, () =>
        answer.beginOwn(failed !== false && failed() ? "error" : result),
      );
      request.exchange.delivered = true;
      this.#options.cache.counted(
        call.repository,
        result,
        plan.kind === "lead" ? plan.source : "response",
        bytes,
      );
      this.#count(call, failed !== false && failed() ? "error" : result);
      return true;
    } catch (error) {
      // Its own leaving also ends the flight under a client that was alone.
      const left = isGone(error) || request.exchange.gone.aborted;
      this.#count(call, left ? result : "error");
      if (left) throw new GitError("client_gone", 499, "the client left");
      if (!(error instanceof FlightCut)) throw error;
      if (!answer.begun && error.cause instanceof GitError) throw error.cause;
      const message = `the answer of ${this.#options.upstream.name} broke off; try again`;
      if (!answer.begun) throw new GitError("upstream_unreachable", 502, message, { cause: error });
      this.#options.logger.warn(
        { request_id: request.exchange.id, repo: call.repository.id.key, reason: messageOf(error.cause) },
        "an upstream fetch broke off",
      );
      answer.beginOwn("error");
      await answer.sink.fail(error.inPackfile ? encodeSideBandError(message) : encodeErrorLine(message));
      return false;
    } finally {
      reader.leave();
    }
  }

  /** The code host's answer to the fetch is no fetch answer. */
  async #relayed(call: FetchCall, upstream: CachedAnswer, end: () => void): Promise<boolean> {
    try {
      this.#options.gate.noteStatus(call.key, upstream.status);
      this.#count(call, isRefusal(upstream.status) ? "rejected" : "error");
      await call.answer.endRefused(upstream, call.request.relay);
      return false;
    } finally {
      upstream.cancel();
      end();
    }
  }

  /** The code host's answer to a question of ours is no yes. */
  async #refused(call: FetchCall, no: RefAnswer): Promise<boolean> {
    if (no.kind === "yes") return true;
    this.#count(call, isRefusal(no.answer.status) ? "rejected" : "error");
    await call.answer.endRefused(no.answer, call.request.relay);
    return false;
  }

  async #ask(call: FetchCall, body: Buffer, signal: AbortSignal): Promise<CachedAnswer> {
    const { request } = call;
    const startedAt = performance.now();
    const answer = await this.#options.upstream.send({
      kind: "fetch",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal,
    });
    request.exchange.timing("upstream", performance.now() - startedAt);
    return { ...answer, isFetchAnswer: isUploadPackResult(answer) };
  }

  /** Whether the code host offers what the request uses; what it does not offer is its own to refuse. */
  async #isAdvertised({ request, repository }: FetchCall, fetch: FetchRequest): Promise<boolean> {
    const used = featuresOf(fetch);
    if (used.length === 0) return true;
    const { upstream } = this.#options;
    repository.features ??= await askFeatures(upstream, request).catch(() => undefined);
    const { features } = repository;
    return features !== undefined && used.every((feature) => features.has(feature));
  }

  /**
   * Asks the code host what `want-ref` and `deepen-not` names stand for now, with the caller's credential. For
   * `want-ref` the answer to the fetch is compared with this before it is stored. A `deepen-not` ref that moves in
   * between gives an answer that is cut at the newer place, filed under the older one; the objects are the wants' own
   * either way.
   */
  async #resolve(call: FetchCall, fetch: FetchRequest): Promise<Resolution | RefAnswer> {
    const { wantRefs, deepenNots } = fetch;
    if (wantRefs.length === 0 && deepenNots.length === 0) return NOTHING_TO_RESOLVE;
    const asked = [...wantRefs, ...deepenNots.flatMap((name) => candidates(name))];
    const answer = await this.#options.gate.ask(call.key, call.request, call.command.request, asked);
    if (answer.kind === "no" || answer.body === undefined) return answer;
    const refs = new Map(decodeLsRefsResponse(answer.body).map((ref) => [ref.name, ref.oid]));
    const wantedRefs = new Map<string, string>();
    for (const name of wantRefs) {
      const oid = refs.get(name);
      if (oid !== undefined) wantedRefs.set(name, oid);
    }
    const lines = [...new Set(asked)].toSorted().map((name) => `${refs.get(name) ?? "-"} ${name}`);
    return { wantedRefs, lines };
  }

  async #keyOf(
    { repository, command }: FetchCall,
    fetch: FetchRequest,
    format: ObjectFormat,
    { lines }: Resolution,
  ): Promise<string | undefined> {
    if (!isStorableRequest(fetch)) return undefined;
    // The tags that come along depend on which there are; where that is not known, nothing may be stored.
    const tags = fetch.includeTag ? repository.tips.tagsDigest() : undefined;
    if (fetch.includeTag && tags === undefined) return undefined;
    return await this.#options.known.keyOf(command.request, { format, resolved: lines, tags });
  }

  #count(call: FetchCall, result: FetchResult): void {
    this.#options.outcomes.fetch(call.request.exchange, call.request.policy, result);
  }
}

/**
 * What a question on a fetch's behalf asks for: HEAD is enough for a yes. Branches and tags come along where the answer
 * depends on which tags there are and that is not known, and where HEAD names nothing: the answer about it alone would
 * be empty, and leave open whether this is still the same repository.
 */
function prefixesFor({ tips }: CachedRepository, { includeTag }: FetchRequest): readonly string[] {
  const { head, refs } = tips.recent();
  const isHeadless = head === undefined && refs.size > 0;
  const lacksTags = includeTag && tips.tagsDigest() === undefined;
  return isHeadless || lacksTags ? SURVEY_PREFIXES : ["HEAD"];
}

/** Whether nothing but the arguments decides on the answer: a `server-option` is the code host's to understand. */
function isPlain(command: CommandRequest): boolean {
  return command.capabilities.every((text) => !text.startsWith("server-option"));
}

/** The full names that a short one may mean (gitrevisions, "<refname>"). */
function candidates(name: string): string[] {
  return [name, `refs/${name}`, `refs/tags/${name}`, `refs/heads/${name}`, `refs/remotes/${name}`];
}
