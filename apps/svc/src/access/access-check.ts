import { isRedirect, isRefusal, isWithdrawn } from "../upstream/response-status.ts";
import type { Clock } from "@devplat/base";
import { requestObjectFormat, type CommandRequest } from "@devplat/git-protocol";
import { FetchAuthorization, prefixesFor, type RequestedFetch, type ObjectLookup } from "./authorization.ts";
import type { Access, AccessRequest, Decision, RefQueries, Refusal } from "./access-request.ts";
import { AuthorizationCache, authorizationKey, type AuthorizationKey } from "./authorization-cache.ts";
import type { RefSnapshotStore } from "./ref-snapshot-store.ts";
import { repositoryId } from "./repository-id.ts";
import { watchForErrorLine } from "../upstream/error-line.ts";
import { GitError } from "../upstream/errors.ts";
import { ProbeLimit } from "./probe-limit.ts";
import type { RefProbes, RefsResponse } from "./ref-probe.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";

export interface AccessCheckOptions {
  readonly probes: RefProbes;
  readonly refs: RefSnapshotStore;
  readonly objects: ObjectLookup;
  readonly clock: Clock;
  /** `host.url`, part of every authorization's key. */
  readonly hostUrl: string;
  /** `cache.grant_seconds` */
  readonly grantSeconds: number;
  /** Probes that one client may cause per minute. */
  readonly probesPerMinute: number;
}

export interface ProbeOptions {
  /** Whether the response must name the branch of HEAD. Default false. */
  readonly symrefs?: boolean;
}

/**
 * Ensures that no byte from the cache is sent without an authorization by the code host (spec/svc.md section 2.1). An
 * authorization of an `ls-refs` that a client sent is remembered for a short time. For a fetch without one, a probe is
 * sent with the client's credential. Its response is remembered only if it renews an `ls-refs` of the client. So a client
 * that never sends `ls-refs` causes a probe each time, and a revocation takes effect immediately.
 */
export class AccessCheck implements RefQueries {
  readonly #probes: RefProbes;
  readonly #refs: RefSnapshotStore;
  readonly #objects: ObjectLookup;
  readonly #hostUrl: string;
  readonly #authorizations: AuthorizationCache;
  readonly #limit: ProbeLimit;

  constructor(options: AccessCheckOptions) {
    this.#probes = options.probes;
    this.#refs = options.refs;
    this.#objects = options.objects;
    this.#hostUrl = options.hostUrl;
    this.#authorizations = new AuthorizationCache(options.grantSeconds, options.clock);
    this.#limit = new ProbeLimit(options.probesPerMinute, options.clock);
  }

  /** The time to hand to {@link recordAuthorization}: taken before the request is sent. */
  now(): number {
    return this.#authorizations.now();
  }

  /**
   * Records the code host's authorization of a client's own `ls-refs`.
   *
   * @param body the whole response; undefined: too long to be kept
   * @throws ProtocolError if its lines are not refs: then nothing is recorded
   */
  async recordAuthorization(
    access: Access,
    sentAt: number,
    prefixes: readonly string[],
    body: Buffer | undefined,
  ): Promise<void> {
    const { owner, name } = access.target;
    await this.#refs.record(repositoryId(owner, name), prefixes, body);
    this.#authorizations.record(this.#keyOf(access), sentAt);
  }

  /**
   * Deletes the authorization if the response to a request that reads refuses access: by 401, 403, 404, 410, 451 or a
   * redirect, or by an `ERR` packet when that is read. The caller must pass every such response of the code host here.
   *
   * @returns the response to go on with
   */
  observe(access: Access, response: UpstreamResponse): UpstreamResponse {
    const { renewedAuthorization: renewed } = response;
    if (renewed !== undefined) {
      // The credential of the request got a 401; the response is for the one that replaced it.
      this.refuse(access);
      return this.#observe({ ...access, authorization: renewed }, response);
    }
    return this.#observe(access, response);
  }

  /** Deletes the authorization, and ignores authorizations whose request was sent before now. */
  refuse(access: Access): void {
    this.#authorizations.refuse(this.#keyOf(access));
  }

  /** Deletes the authorization after a refused push. Other requests are not affected: the caller may still read. */
  forget(access: Access): void {
    this.#authorizations.forget(this.#keyOf(access));
  }

  /**
   * Decides whether a fetch may read. {@link FetchAuthorization.checkWants} decides which data it may get.
   *
   * @param authorizedAt send time of the authorized `ls-refs` earlier in this body; undefined: there is none
   * @throws GitError as {@link authorize}
   */
  async authorizeFetch(
    request: AccessRequest,
    requested: RequestedFetch,
    authorizedAt: number | undefined,
  ): Promise<FetchAuthorization | Refusal> {
    const { owner, name } = request.target;
    const refs = this.#refs.of(repositoryId(owner, name));
    let sentAt = authorizedAt;
    if (sentAt === undefined) {
      const decision = await this.authorize(request, requested.command, prefixesFor(refs, requested.fetch));
      if (decision.kind === "refused") return decision;
      ({ sentAt } = decision);
    }
    return new FetchAuthorization({
      queries: this,
      objects: this.#objects,
      refs,
      request,
      requested,
      sentAt,
    });
  }

  /**
   * Decides whether a request may read: by the remembered authorization, or by asking the code host.
   *
   * @param prefixes of the requested refs; an authorization does not depend on them
   * @throws GitError if the code host does not answer, or the client causes too many probes
   */
  async authorize(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
  ): Promise<Decision> {
    const sentAt = this.#authorizations.find(this.#keyOf(request));
    if (sentAt !== undefined) return { kind: "authorized", sentAt };
    return decisionOf(await this.ask(request, command, prefixes));
  }

  /**
   * Confirms a decision immediately before the first byte of cached data is sent. If the request waited longer than
   * `grant_seconds` since, or the code host refused the credential since, the code host is asked again.
   *
   * @param prefixes as {@link authorize}
   * @throws GitError if the code host does not answer
   */
  async confirm(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    sentAt: number,
  ): Promise<Decision> {
    if (this.#authorizations.isCurrent(this.#keyOf(request), sentAt)) return { kind: "authorized", sentAt };
    // The limit does not apply: an authorized fetch causes one such probe, and this fetch has waited already.
    return decisionOf(await this.#probe(request, command, prefixes));
  }

  /** Sends a probe with the caller's credential and the fetch's object format, and records the refs. Throws as above. */
  async ask(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    options: ProbeOptions = {},
  ): Promise<RefsResponse> {
    this.#takeProbe(request);
    return await this.#probe(request, command, prefixes, options);
  }

  /**
   * Sends a probe for a repository that is not cached, and records nothing: its state would stay in memory for ever.
   * Throws as {@link ask}.
   */
  async askUnlisted(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    options: ProbeOptions = {},
  ): Promise<RefsResponse> {
    this.#takeProbe(request);
    return await this.#send(request, command, prefixes, options);
  }

  #takeProbe({ context }: AccessRequest): void {
    if (this.#limit.take(context.remoteAddress)) return;
    throw new GitError("busy", 429, "too many fetches without ls-refs from this address; try again", {
      headers: { "Retry-After": "1" },
    });
  }

  async #probe(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    options: ProbeOptions = {},
  ): Promise<RefsResponse> {
    const response = await this.#send(request, command, prefixes, options);
    if (response.kind === "refused") return response;
    const { owner, name } = request.target;
    await this.#refs.record(repositoryId(owner, name), prefixes, response.body);
    this.#authorizations.renew(this.#keyOf(request), response.sentAt);
    return response;
  }

  async #send(
    request: AccessRequest,
    command: CommandRequest,
    prefixes: readonly string[],
    options: ProbeOptions = {},
  ): Promise<RefsResponse> {
    const key = this.#keyOf(request);
    return await this.#probes.ask({
      shareKey: key,
      mayShare: (sentAt) => this.#authorizations.isCurrent(key, sentAt),
      observe: (upstream) => this.observe(request, upstream),
      path: request.target.upstreamPath,
      authorization: request.authorization,
      capabilities: probeCapabilities(command),
      prefixes,
      symrefs: options.symrefs === true,
      idleMs: request.policy.timeoutSeconds * 1000,
    });
  }

  #observe(access: Access, response: UpstreamResponse): UpstreamResponse {
    const { status } = response;
    if (isRefusal(status) || isWithdrawn(status) || isRedirect(status)) this.refuse(access);
    return watchForErrorLine(response, () => this.refuse(access));
  }

  #keyOf({ authorization, target: { owner, name } }: Access): AuthorizationKey {
    return authorizationKey(authorization, this.#hostUrl, repositoryId(owner, name));
  }
}

function decisionOf(response: RefsResponse): Decision {
  return response.kind === "refused" ? response : { kind: "authorized", sentAt: response.sentAt };
}

/** Capabilities of a fetch that decide on the response to `ls-refs`. */
function probeCapabilities(command: CommandRequest): string[] {
  const format = requestObjectFormat(command);
  const options = command.capabilities.filter((text) => text.startsWith("server-option="));
  return [...(format === "sha256" ? ["object-format=sha256"] : ["object-format=sha1"]), ...options];
}
