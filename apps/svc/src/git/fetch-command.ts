import { isRefusal } from "../upstream/response-status.ts";
import { messageOf, within, type Logger } from "@devplat/base";
import { addressKey } from "@devplat/config/address-key";
import {
  encodeErrorLine,
  encodeSideBandError,
  encodeSideBandProgress,
  type EncodedCommand,
  type FetchRequest,
  type ObjectFormat,
} from "@devplat/git-protocol";
import { NOTHING_TO_RESOLVE, RefResolver, type Resolution } from "../access/ref-resolution.ts";
import { BRAND } from "../brand.ts";
import { StoredDataDamaged } from "../cache/responses/block-sums.ts";
import type { CachedRepository } from "../cache/cached-repository.ts";
import { AccessEnded, type FetchPlan } from "../cache/fetch-plan.ts";
import { KEEPALIVE, KEEP_ALIVE_MS } from "../cache/coalescing/keep-alive.ts";
import { leave, type GitCache } from "../cache/git-cache.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import { ResponseCut } from "../cache/coalescing/coalesced-fetch.ts";
import type { StoredResponse } from "../cache/responses/response-store.ts";
import type { FetchAuthorization } from "../access/authorization.ts";
import type { FetchResult } from "../telemetry/metrics.ts";
import type { AccessCheck } from "../access/access-check.ts";
import type { Refusal } from "../access/access-request.ts";
import { askFeatures } from "./advertised-features.ts";
import type { CommandResponse } from "./command-response.ts";
import { GitError, isGone } from "../upstream/errors.ts";
import type { CachedRequest } from "./git-request.ts";
import type { DecodedFetch, RequestCache } from "./body/request-cache.ts";
import { ClientUpstream } from "./fetch-upstream.ts";
import { isUploadPackResult } from "../upstream/headers.ts";
import { commandHeaders } from "./ls-refs-command.ts";
import type { Accel } from "../http/accel/accel.ts";
import type { FileSender } from "../http/send-file/file-sender.ts";
import type { Late } from "../late.ts";
import type { Outcomes } from "./outcome.ts";
import { ResponseSender } from "./response-sender.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

/** Seconds after which a client should retry if the limit gave it no turn. */
const RETRY_AFTER_SECONDS = "10";

/** Maximum number of plans of one fetch, if each probe shows another repository under the name. */
const MAX_PLANS = 3;

/** Error in place of the rest when stored bytes are damaged. The code host answers the next try. */
const OWN_FAULT = `${BRAND.command}: stored data of this repository cannot be read; try again`;

export interface FetchCommandOptions {
  readonly upstream: Upstream;
  readonly access: AccessCheck;
  readonly cache: GitCache;
  readonly outcomes: Outcomes;
  readonly known: RequestCache;
  /** Sends large stored responses. */
  readonly files: Late<FileSender>;
  /** Hands stored responses to the proxy in front. Undefined: they are sent here. */
  readonly accel: Accel | undefined;
  readonly logger: Logger;
}

/** One `fetch` of a body. */
export interface FetchCall {
  readonly request: CachedRequest;
  readonly repository: CachedRepository;
  readonly command: EncodedCommand;
  readonly response: CommandResponse;
  /** Time when an earlier `ls-refs` of the same body was sent upstream, if the code host authorized it. */
  readonly authorizedAt: number | undefined;
  /** Number of plans, including this one. Default 1. */
  readonly plans?: number;
}

/** Answers a `fetch`: after the access check, from a stored response, a shared one, or the code host's own. */
export class FetchCommand {
  readonly #options: FetchCommandOptions;
  readonly #resolver = new RefResolver();

  constructor(options: FetchCommandOptions) {
    this.#options = options;
  }

  /** @returns whether further commands of the body may follow. @throws GitError if the response has not begun */
  async run(call: FetchCall): Promise<boolean> {
    const { context } = call.request;
    try {
      return await this.#run(call);
    } catch (error) {
      // A fetch that fails before its response begins is counted here, unless it was counted already. A client that leaves
      // before the source of the response is known counts as a miss: it got nothing from the cache.
      if (!context.cacheCounted) this.#count(call, isGone(error) ? "miss" : "error");
      throw error;
    }
  }

  async #run(call: FetchCall): Promise<boolean> {
    const { upstream, access, cache, known } = this.#options;
    const { request, repository, command } = call;
    const { context } = request;
    const startedAt = performance.now();
    const decoded = known.fetchOf(command.request);
    const { fetch, namedFormat } = decoded;
    const format = namedFormat ?? "sha1";
    const requested = { command: command.request, fetch, format };
    const authorization = await access.authorizeFetch(request, requested, call.authorizedAt);
    if (call.authorizedAt === undefined) context.stage("gate", startedAt);
    if ("kind" in authorization) return await this.#refused(call, authorization);
    const isUnderstood = namedFormat !== undefined && (await this.#isAdvertised(call, decoded));
    const resolution =
      isUnderstood && decoded.isStorable ? await this.#resolve(fetch, authorization) : NOTHING_TO_RESOLVE;
    if (resolution !== undefined && "kind" in resolution) return await this.#refused(call, resolution);
    const isResolved = isUnderstood && resolution !== undefined;
    const plannedAt = performance.now();
    const key = isResolved ? await this.#keyOf(call, decoded, format, resolution) : undefined;
    if (key !== undefined) await authorization.checkWants(key);
    const plan = await cache.plan({
      repository,
      key,
      wantedRefs: resolution?.wantedRefs ?? NOTHING_TO_RESOLVE.wantedRefs,
      format,
      fetch: isResolved && decoded.isPlain ? fetch : undefined,
      body: command.bytes,
      gone: context.gone,
      client: clientOf(context),
      authorization,
      upstream: new ClientUpstream({
        upstream,
        access,
        request,
        authorization,
        headers: () => commandHeaders(request),
      }),
    });
    context.timing("plan", performance.now() - plannedAt);
    if (plan.kind === "replaced") return await this.#again(call, authorization.sentAt);
    return await this.#carryOut(call, plan);
  }

  async #carryOut(call: FetchCall, plan: Exclude<FetchPlan, { kind: "replaced" }>): Promise<boolean> {
    const { context } = call.request;
    switch (plan.kind) {
      case "gone":
        throw new GitError("client_gone", 499, "the client left");
      case "busy":
        context.refusedBy = "queue";
        this.#count(call, "rejected");
        throw new GitError("busy", 503, "too many requests are waiting; try again", {
          headers: { "Retry-After": RETRY_AFTER_SECONDS },
        });
      case "told":
        return await this.#afterWait(call, plan);
      case "relay":
        return await this.#relayed(call, plan.response, plan.end);
      case "refused":
        return await this.#refused(call, plan);
      case "file":
        return await this.#fromFile(call, plan.file);
      default:
        return await this.#fromCoalesced(call, plan);
    }
  }

  /** Plans again, because the name may belong to another repository now. @throws GitError `busy` after too many plans */
  async #again(call: FetchCall, authorizedAt: number): Promise<boolean> {
    const { plans = 1 } = call;
    if (plans >= MAX_PLANS) {
      const message = "the repository changes while it is read; try again";
      throw new GitError("busy", 503, message, { headers: { "Retry-After": RETRY_AFTER_SECONDS } });
    }
    return await this.#run({ ...call, authorizedAt, plans: plans + 1 });
  }

  /** Tells the client that it waits, until its response is there. Failures from then on are packets. */
  async #afterWait(
    call: FetchCall,
    { notice, served }: Extract<FetchPlan, { kind: "told" }>,
  ): Promise<boolean> {
    const { response, command } = call;
    const { fetch } = this.#options.known.fetchOf(command.request);
    let plan: FetchPlan | undefined;
    try {
      await response.beginPack(notice.beginning);
      const isHere = served.then(() => true);
      isHere.catch(() => undefined);
      do await response.sink.write(waitingPacket(notice.ahead(), fetch.noProgress));
      while ((await within(isHere, KEEP_ALIVE_MS)) === undefined);
      plan = await served;
      response.sink.skip(notice.beginning);
      if (plan.kind === "replaced") {
        throw new GitError("busy", 503, "the repository changed during the wait; try again");
      }
      return await this.#carryOut(call, plan);
    } catch (error) {
      if (plan === undefined) void served.then(leave).catch(() => undefined);
      if (!(error instanceof GitError) || isGone(error)) throw error;
      if (!call.request.context.cacheCounted) this.#count(call, "error");
      await response.sink.fail(errorPacket(error.message, true));
      return false;
    }
  }

  async #fromFile(call: FetchCall, file: StoredResponse): Promise<boolean> {
    const { response } = call;
    if (await this.#handedOver(call, file)) return true;
    response.beginOwn("hit", file.size);
    const sender = new ResponseSender(response.sink, response.hasLength ? this.#options.files : undefined);
    try {
      const bytes = await sender.file(file);
      call.request.context.delivered = true;
      this.#options.cache.counted(call.repository, "hit", file.source ?? "response", bytes);
      this.#count(call, "hit");
      return true;
    } catch (error) {
      this.#count(call, isGone(error) ? "hit" : "error");
      this.#options.cache.cutOff(file.source ?? "response", call.request.context.bytes);
      if (!(error instanceof StoredDataDamaged)) throw error;
      await response.sink.fail(errorPacket(OWN_FAULT, response.inPack || sender.inPackfile));
      return false;
    } finally {
      await file.close();
    }
  }

  /** Tells the proxy in front to send the response, if it can. @returns false: nothing was sent */
  async #handedOver({ request, repository, response }: FetchCall, file: StoredResponse): Promise<boolean> {
    const { accel, cache, outcomes } = this.#options;
    const { context, policy } = request;
    if (accel === undefined || !response.canHandOver) return false;
    const location = await accel.handOver(context.request, file);
    if (location === undefined) return false;
    response.handOver(location, file.size);
    await file.close();
    context.delivered = true;
    cache.counted(repository, "hit", "accel", file.size);
    outcomes.fetch(context, policy, "hit");
    return true;
  }

  async #fromCoalesced(
    call: FetchCall,
    plan: Extract<FetchPlan, { kind: "lead" | "follow" }>,
  ): Promise<boolean> {
    const { response, request } = call;
    const { reader } = plan;
    const result = plan.kind === "lead" ? plan.result : "hit";
    const source = plan.kind === "lead" ? plan.source : "response";
    const hasFailed = plan.kind === "lead" ? plan.failed : () => false;
    const sender = new ResponseSender(response.sink);
    try {
      const bytes = await sender.coalesced(reader, () => response.beginOwn(hasFailed() ? "error" : result));
      request.context.delivered = true;
      this.#options.cache.counted(call.repository, result, source, bytes);
      this.#count(call, hasFailed() ? "error" : result);
      return true;
    } catch (error) {
      // When the only client leaves, its fetch ends.
      const left = isGone(error) || request.context.gone.aborted;
      const ended =
        error instanceof ResponseCut && error.cause instanceof AccessEnded ? error.cause : undefined;
      const failure = ended !== undefined && isRefusal(ended.status) ? "rejected" : "error";
      this.#count(call, left ? result : failure);
      this.#options.cache.cutOff(source, request.context.bytes);
      if (left) throw new GitError("client_gone", 499, "the client left");
      if (!(error instanceof ResponseCut)) throw error;
      if (error.isOwn) {
        response.beginOwn("error");
        await response.sink.fail(errorPacket(OWN_FAULT, response.inPack || sender.inPackfile));
        return false;
      }
      if (!response.begun && error.cause instanceof GitError) throw error.cause;
      const { name } = this.#options.upstream;
      const message =
        ended === undefined
          ? `the response of ${name} broke off; try again`
          : `${name} refused access while the response was prepared: it answered ${ended.status}`;
      if (!response.begun) throw new GitError("upstream_unreachable", 502, message, { cause: error });
      if (ended === undefined) {
        this.#options.logger.warn(
          { request_id: request.context.id, repo: call.repository.id.key, reason: messageOf(error.cause) },
          "an upstream fetch broke off",
        );
      }
      response.beginOwn(failure);
      await response.sink.fail(errorPacket(message, response.inPack || sender.inPackfile));
      return false;
    } finally {
      reader.leave();
    }
  }

  /** The code host's response is not a fetch response. */
  async #relayed(call: FetchCall, upstream: UpstreamResponse, end: () => void): Promise<boolean> {
    try {
      // An error line of the code host, such as "not our ref", is a miss, as it is if the mirror is not asked first.
      const otherwise = isUploadPackResult(upstream) ? "miss" : "error";
      this.#count(call, isRefusal(upstream.status) ? "rejected" : otherwise);
      await call.response.endRefused(upstream, call.request.relay);
      return false;
    } finally {
      upstream.cancel();
      end();
    }
  }

  /** The code host refused a probe. */
  async #refused(call: FetchCall, { response }: Refusal): Promise<boolean> {
    this.#count(call, isRefusal(response.status) ? "rejected" : "error");
    await call.response.endRefused(response, call.request.relay);
    return false;
  }

  /** Whether the code host offers the features that the request uses. Other requests are forwarded. */
  async #isAdvertised(
    { request, repository }: FetchCall,
    { features: used }: DecodedFetch,
  ): Promise<boolean> {
    if (used.length === 0) return true;
    const { upstream, access } = this.#options;
    repository.features ??= await askFeatures(upstream, request, (response) =>
      access.observe(request, response),
    ).catch(() => undefined);
    const { features } = repository;
    return features !== undefined && used.every((feature) => features.has(feature));
  }

  /**
   * Asks the code host which objects `want-ref` and `deepen-not` names have now, with the caller's credential. For
   * `want-ref` the response to the fetch is compared with them before it is stored. A `deepen-not` ref can move between
   * the two requests. Then the history ends at the newer object, but the key has the older one. This is accepted:
   * every object of the response belongs to the wants.
   *
   * @returns undefined if the response is too long to be kept: then the fetch is forwarded, and not stored
   */
  async #resolve(
    fetch: FetchRequest,
    authorization: FetchAuthorization,
  ): Promise<Resolution | Refusal | undefined> {
    const prefixes = this.#resolver.prefixesFor(fetch);
    if (prefixes === undefined) return NOTHING_TO_RESOLVE;
    const response = await authorization.ask(prefixes);
    if (response.kind === "refused") return response;
    return response.body === undefined ? undefined : this.#resolver.resolve(fetch, response.body);
  }

  async #keyOf(
    { repository, command }: FetchCall,
    { fetch, isStorable }: DecodedFetch,
    format: ObjectFormat,
    { lines }: Resolution,
  ): Promise<string | undefined> {
    if (!isStorable) return undefined;
    // The response depends on the existing tags. If they are not known, it must not be stored.
    const tags = fetch.includeTag ? repository.tips.tagsDigest() : undefined;
    if (fetch.includeTag && tags === undefined) return undefined;
    return await this.#options.known.keyOf(command.request, { format, resolved: lines, tags });
  }

  #count(call: FetchCall, result: FetchResult): void {
    this.#options.outcomes.fetch(call.request.context, call.request.policy, result);
  }
}

/** Client that a place in a queue is for: the token of this service, or the address. */
export function clientOf({ principal, remoteAddress }: RequestContext): string {
  const { tokenId } = principal ?? {};
  return tokenId === undefined ? addressKey(remoteAddress) : `token:${tokenId}`;
}

/** Says that the client waits. A client that wants no progress gets a packet without data. */
function waitingPacket(ahead: number, noProgress: boolean): Buffer {
  return noProgress ? KEEPALIVE : encodeSideBandProgress(`waiting, ${ahead} ahead\n`);
}

function errorPacket(message: string, inPackfile: boolean): Buffer {
  return inPackfile ? encodeSideBandError(message) : encodeErrorLine(message);
}
