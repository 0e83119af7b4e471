import { isRefusal } from "../upstream/response-status.ts";
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
import { BRAND } from "../brand.ts";
import { StoredDataDamaged } from "../cache/responses/block-sums.ts";
import type { CachedRepository } from "../cache/cached-repository.ts";
import { AccessEnded, type FetchPlan } from "../cache/fetch-plan.ts";
import type { GitCache } from "../cache/git-cache.ts";
import { FlightCut } from "../cache/coalescing/flight.ts";
import type { OpenResponse } from "../cache/responses/response-files.ts";
import { isStorableRequest } from "../cache/responses/response-key.ts";
import { SURVEY_PREFIXES } from "../access/visibility.ts";
import type { FetchResult } from "../telemetry/metrics.ts";
import type { AccessCheck } from "../access/access-check.ts";
import { askFeatures, featuresOf } from "./advertised-features.ts";
import type { CommandAnswer } from "./command-answer.ts";
import { GitError, isGone } from "../upstream/errors.ts";
import type { CachedRequest } from "./git-request.ts";
import type { KnownBodies } from "./known-bodies.ts";
import { commandHeaders } from "./ls-refs-command.ts";
import type { Outcomes } from "./outcome.ts";
import { isUploadPackResult, kept, type RefsAnswer } from "../access/ref-probe.ts";
import { AnswerSender } from "./send-stored.ts";
import type { Upstream, UpstreamAnswer } from "../upstream/upstream.ts";

/** Seconds after which a client that found no turn should come again. */
const RETRY_AFTER_SECONDS = "10";

/** Times that a fetch is planned while the answers to its probes show one repository after another under the name. */
const MAX_PLANS = 3;
/** Maximum number of names that the code host is asked for one by one. */
const MAX_ASKED_NAMES = 64;

/** Said in place of the rest when bytes of ours turned out damaged: the next try is answered by the code host. */
const OWN_FAULT = `${BRAND.command}: stored data of this repository cannot be read; try again`;

export interface FetchCommandOptions {
  readonly upstream: Upstream;
  readonly access: AccessCheck;
  readonly cache: GitCache;
  readonly outcomes: Outcomes;
  readonly known: KnownBodies;
  readonly logger: Logger;
}

/** One `fetch` of a body. */
export interface FetchCall {
  readonly request: CachedRequest;
  readonly repository: CachedRepository;
  readonly command: EncodedCommand;
  readonly answer: CommandAnswer;
  /** When an `ls-refs` before it in the same body was sent upstream, if the code host authorized that. */
  readonly authorizedAt: number | undefined;
  /** How often it was planned, with this time. Default 1. */
  readonly plans?: number;
}

type RefusedAnswer = Extract<RefsAnswer, { kind: "refused" }>;

/** The code host's latest decision on a fetch. */
interface LatestDecision {
  /** When the request behind it was sent. */
  askedAt: number;
  readonly fetch: FetchRequest;
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

/** Answers a `fetch`: after the access check, from a stored answer, a shared one, or the code host's own. */
export class FetchCommand {
  readonly #options: FetchCommandOptions;

  constructor(options: FetchCommandOptions) {
    this.#options = options;
  }

  /** @returns whether further commands of the body may follow. @throws GitError if the answer has not begun */
  async run(call: FetchCall): Promise<boolean> {
    const { context } = call.request;
    try {
      return await this.#run(call);
    } catch (error) {
      // A fetch that ends without an answer counts too; one that was counted has its state. Who leaves while it is not
      // clear yet where the answer will come from got nothing from the cache.
      if (!context.cacheCounted) this.#count(call, isGone(error) ? "miss" : "error");
      throw error;
    }
  }

  async #run(call: FetchCall): Promise<boolean> {
    const { access, cache, known } = this.#options;
    const { request, repository, command } = call;
    const { context } = request;
    const startedAt = performance.now();
    const format = requestObjectFormat(command.request);
    const fetch = known.fetchOf(command.request, format ?? "sha1");
    const latest: LatestDecision = { askedAt: call.authorizedAt ?? 0, fetch };
    if (call.authorizedAt === undefined) {
      const decision = await access.authorize(request, command.request, prefixesFor(repository, fetch));
      context.stage("gate", startedAt);
      if (decision.kind === "refused") return await this.#refused(call, decision);
      latest.askedAt = decision.askedAt;
    }
    const isOurs = format !== undefined && (await this.#isAdvertised(call, fetch));
    const resolution =
      isOurs && isStorableRequest(fetch) ? await this.#resolve(call, fetch, latest) : NOTHING_TO_RESOLVE;
    if (resolution !== undefined && "kind" in resolution) return await this.#refused(call, resolution);
    const plannedAt = performance.now();
    const plan = await cache.plan<CachedAnswer>({
      repository,
      key:
        isOurs && resolution !== undefined ? await this.#keyOf(call, fetch, format, resolution) : undefined,
      wants: fetch.wants,
      wantedRefs: resolution?.wantedRefs ?? NOTHING_TO_RESOLVE.wantedRefs,
      format: format ?? "sha1",
      fetch: isOurs && resolution !== undefined && isPlain(command.request) ? fetch : undefined,
      gone: context.gone,
      open: (signal) => this.#ask(call, command.bytes, signal),
      ask: (body, signal) => this.#ask(call, body, signal),
      learnRefs: async (prefixes) => {
        const answer = await access.ask(request, command.request, prefixes);
        if (answer.kind === "authorized") latest.askedAt = answer.askedAt;
      },
      confirmAccess: async () => this.#confirmWaiting(call, latest),
      withBody: (answer, body) => ({ ...kept(answer, body), isFetchAnswer: false }),
    });
    context.timing("plan", performance.now() - plannedAt);
    return await this.#carryOut(call, plan, latest);
  }

  async #carryOut(call: FetchCall, plan: Plan, latest: LatestDecision): Promise<boolean> {
    if (plan.kind === "gone") throw new GitError("client_gone", 499, "the client left");
    if (plan.kind === "busy") {
      throw new GitError("busy", 503, "too many fetches from the code host are waiting; try again", {
        headers: { "Retry-After": RETRY_AFTER_SECONDS },
      });
    }
    if (plan.kind === "relay") return await this.#relayed(call, plan.answer, plan.end);
    if (plan.kind !== "lead" || plan.confirm) {
      const leave = async (): Promise<void> =>
        plan.kind === "file" ? await plan.file.close() : plan.reader.leave();
      const { identity } = call.repository.tips;
      const refused = await this.#confirm(call, latest).catch(async (error: unknown) => {
        await leave();
        throw error;
      });
      if (refused !== undefined) {
        await leave();
        return await this.#refused(call, refused);
      }
      if (identity !== call.repository.tips.identity) {
        await leave();
        return await this.#again(call, latest);
      }
    }
    if (plan.kind === "file") return await this.#fromFile(call, plan.file);
    return await this.#fromFlight(call, plan);
  }

  /** Plans again, because the name may stand for another repository since. @throws GitError `busy` if that goes on */
  async #again(call: FetchCall, { askedAt }: LatestDecision): Promise<boolean> {
    const { plans = 1 } = call;
    if (plans >= MAX_PLANS) {
      const message = "the repository changes while it is read; try again";
      throw new GitError("busy", 503, message, { headers: { "Retry-After": RETRY_AFTER_SECONDS } });
    }
    return await this.#run({ ...call, authorizedAt: askedAt, plans: plans + 1 });
  }

  /** Asks the code host again where its decision is too old for cached data. @returns its refusal */
  async #confirm(call: FetchCall, latest: LatestDecision): Promise<RefusedAnswer | undefined> {
    const { request, command, repository } = call;
    const { access } = this.#options;
    const prefixes = prefixesFor(repository, latest.fetch);
    const decision = await access.confirm(request, command.request, prefixes, latest.askedAt);
    if (decision.kind === "refused") return decision;
    latest.askedAt = decision.askedAt;
    return undefined;
  }

  /** The same for an answer that has begun with keepalive packets. @throws AccessEnded, GitError */
  async #confirmWaiting(call: FetchCall, latest: LatestDecision): Promise<void> {
    // The answer is then for those who joined, and each of them is confirmed on its own.
    if (call.request.context.gone.aborted) return;
    const refused = await this.#confirm(call, latest);
    if (refused !== undefined) throw new AccessEnded(refused.answer.status);
  }

  async #fromFile(call: FetchCall, file: OpenResponse): Promise<boolean> {
    const { answer } = call;
    const sender = new AnswerSender(answer.sink);
    try {
      answer.beginOwn("hit", file.size);
      const bytes = await sender.file(file);
      call.request.context.delivered = true;
      this.#options.cache.counted(call.repository, "hit", "response", bytes);
      this.#count(call, "hit");
      return true;
    } catch (error) {
      this.#count(call, isGone(error) ? "hit" : "error");
      if (!(error instanceof StoredDataDamaged)) throw error;
      await answer.sink.fail(errorPacket(OWN_FAULT, sender.inPackfile));
      return false;
    } finally {
      await file.close();
    }
  }

  async #fromFlight(call: FetchCall, plan: Extract<Plan, { kind: "lead" | "follow" }>): Promise<boolean> {
    const { answer, request } = call;
    const { reader } = plan;
    const result = plan.kind === "lead" ? plan.result : "hit";
    const failed = plan.kind === "lead" && plan.failed;
    const sender = new AnswerSender(answer.sink);
    try {
      const bytes = await sender.flight(reader, () =>
        answer.beginOwn(failed !== false && failed() ? "error" : result),
      );
      request.context.delivered = true;
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
      const left = isGone(error) || request.context.gone.aborted;
      const ended =
        error instanceof FlightCut && error.cause instanceof AccessEnded ? error.cause : undefined;
      const failure = ended !== undefined && isRefusal(ended.status) ? "rejected" : "error";
      this.#count(call, left ? result : failure);
      if (left) throw new GitError("client_gone", 499, "the client left");
      if (!(error instanceof FlightCut)) throw error;
      if (error.isOwn) {
        answer.beginOwn("error");
        await answer.sink.fail(errorPacket(OWN_FAULT, sender.inPackfile));
        return false;
      }
      if (!answer.begun && error.cause instanceof GitError) throw error.cause;
      const { name } = this.#options.upstream;
      const message =
        ended === undefined
          ? `the answer of ${name} broke off; try again`
          : `${name} refused access while the answer was prepared: it answered ${ended.status}`;
      if (!answer.begun) throw new GitError("upstream_unreachable", 502, message, { cause: error });
      if (ended === undefined) {
        this.#options.logger.warn(
          { request_id: request.context.id, repo: call.repository.id.key, reason: messageOf(error.cause) },
          "an upstream fetch broke off",
        );
      }
      answer.beginOwn(failure);
      await answer.sink.fail(errorPacket(message, sender.inPackfile));
      return false;
    } finally {
      reader.leave();
    }
  }

  /** The code host's answer to the fetch is no fetch answer. */
  async #relayed(call: FetchCall, upstream: CachedAnswer, end: () => void): Promise<boolean> {
    try {
      this.#count(call, isRefusal(upstream.status) ? "rejected" : "error");
      await call.answer.endRefused(upstream, call.request.relay);
      return false;
    } finally {
      upstream.cancel();
      end();
    }
  }

  /** The code host refused a probe. */
  async #refused(call: FetchCall, { answer }: RefusedAnswer): Promise<boolean> {
    this.#count(call, isRefusal(answer.status) ? "rejected" : "error");
    await call.answer.endRefused(answer, call.request.relay);
    return false;
  }

  async #ask(call: FetchCall, body: Buffer, signal: AbortSignal): Promise<CachedAnswer> {
    const { request } = call;
    const startedAt = performance.now();
    const received = await this.#options.upstream.send({
      kind: "fetch",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal,
    });
    request.context.timing("upstream", performance.now() - startedAt);
    const answer = this.#options.access.observe(request, received);
    return { ...answer, isFetchAnswer: isUploadPackResult(answer) };
  }

  /** Whether the code host offers what the request uses; what it does not offer is its own to refuse. */
  async #isAdvertised({ request, repository }: FetchCall, fetch: FetchRequest): Promise<boolean> {
    const used = featuresOf(fetch);
    if (used.length === 0) return true;
    const { upstream, access } = this.#options;
    repository.features ??= await askFeatures(upstream, request, (answer) =>
      access.observe(request, answer),
    ).catch(() => undefined);
    const { features } = repository;
    return features !== undefined && used.every((feature) => features.has(feature));
  }

  /**
   * Asks the code host what `want-ref` and `deepen-not` names stand for now, with the caller's credential. For
   * `want-ref` the answer to the fetch is compared with this before it is stored. A `deepen-not` ref that moves in
   * between gives an answer that is cut at the newer place, filed under the older one; the objects are the wants' own
   * either way.
   *
   * @returns undefined if the answer is too long to be kept: then the fetch is forwarded, and not stored
   */
  async #resolve(
    call: FetchCall,
    fetch: FetchRequest,
    latest: LatestDecision,
  ): Promise<Resolution | RefusedAnswer | undefined> {
    const { wantRefs, deepenNots } = fetch;
    if (wantRefs.length === 0 && deepenNots.length === 0) return NOTHING_TO_RESOLVE;
    const asked = [...wantRefs, ...deepenNots.flatMap((name) => candidates(name))];
    const prefixes = fewPrefixes(asked);
    const answer = await this.#options.access.ask(call.request, call.command.request, prefixes);
    if (answer.kind === "refused") return answer;
    latest.askedAt = answer.askedAt;
    if (answer.body === undefined) return undefined;
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
    this.#options.outcomes.fetch(call.request.context, call.request.policy, result);
  }
}

/**
 * Prefixes of the refs that a probe on a fetch's behalf asks for: HEAD is enough for an authorization. Branches and tags come along where the answer
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

/**
 * Prefixes that cover these names: the names themselves, or for many of them their top folders; none cover all. Git
 * compares each of its refs with each prefix, which with 60,000 of both takes it half a minute.
 */
function fewPrefixes(names: readonly string[]): readonly string[] {
  if (names.length <= MAX_ASKED_NAMES) return names;
  const folders = new Set(names.map((name) => /^refs\/[^/]+\//u.exec(name)?.[0] ?? name));
  return folders.size <= MAX_ASKED_NAMES ? [...folders] : [];
}

/** The full names that a short one may mean (gitrevisions, "<refname>"). */
function candidates(name: string): string[] {
  return [name, `refs/${name}`, `refs/tags/${name}`, `refs/heads/${name}`, `refs/remotes/${name}`];
}

function errorPacket(message: string, inPackfile: boolean): Buffer {
  return inPackfile ? encodeSideBandError(message) : encodeErrorLine(message);
}
