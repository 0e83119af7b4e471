import type { FileSender } from "../http/send-file/file-sender.ts";
import type { Late } from "../late.ts";
import { isRedirect, isRefusal } from "../upstream/response-status.ts";
import type { Logger } from "@devplat/base";
import { requestedProtocolVersion } from "@devplat/git-protocol";
import type { GitCache } from "../cache/git-cache.ts";
import type { ChangeWatcher } from "../coordination/change-watcher.ts";
import { offersBundles, type CachePolicies, type CachePolicy } from "../cache/policy.ts";
import { explainUnauthorized } from "../code-host/refusal-words.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import type { GitHandler } from "../http/server/listener.ts";
import type { VirtualHost } from "../http/routing/virtual-host.ts";
import { queryValues, splitTarget, type Target } from "../http/routing/target.ts";
import { answerBusy } from "../http/request/busy-answer.ts";
import { answerText } from "../http/request/text-answer.ts";
import type { RequestResult } from "../telemetry/metrics.ts";
import type { Admission, CredentialCheck } from "../tokens/admission.ts";
import { presentedCredential } from "../credentials/presented.ts";
import type { AccessCheck } from "../access/access-check.ts";
import { AdvertisedFeatures, offerBundles } from "./advertised-features.ts";
import type { BodyReaders } from "./body/body-reader.ts";
import { GitError } from "../upstream/errors.ts";
import type { EnsureCommand } from "./ensure/ensure-command.ts";
import type { SeedCommand } from "./seed/seed-command.ts";
import type { GitRequest, RepositoryRequest } from "./git-request.ts";
import { singleHeader, upstreamHeaders } from "../upstream/headers.ts";
import { answerLfsBatch, lfsOperation, lfsPermissions, readLfsBatch, type LfsBatch } from "./lfs.ts";
import { actionOf, routeOf } from "./route-table.ts";
import { rewriteLocation } from "./location.ts";
import type { Outcomes } from "./outcome.ts";
import { passThrough, type BodyLimits, type Passed } from "./pass-through.ts";
import type { RelayOptions } from "./relay.ts";
import type { UploadPack } from "./upload-pack.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

export interface GitRoutesParts {
  /** Path of `host.url`, without a final slash. */
  readonly basePath: string;
  readonly upstream: Upstream;
  readonly outcomes: Outcomes;
  readonly credentials: CredentialCheck;
  readonly policies: CachePolicies;
  readonly bodyLimits: BodyLimits;
  readonly lfsBatches: BodyReaders;
  /** Undefined: the cache feature is off, and everything passes through. */
  readonly cached:
    | {
        readonly access: AccessCheck;
        readonly cache: GitCache;
        readonly uploadPack: UploadPack;
        readonly ensure: Late<EnsureCommand>;
        readonly seed: Late<SeedCommand>;
        /** `cache.strict_lsrefs`: there are no bundles. */
        readonly strict: boolean;
        readonly files: Late<FileSender>;
        /** Changes that other instances made to the list and to stored data. */
        readonly changes: Pick<ChangeWatcher, "isCurrent" | "refresh">;
      }
    | undefined;
  readonly logger: Logger;
}

/** Requests to the git side of the code host: first the admission, then the cache or the code host. */
export class GitRoutes implements GitHandler {
  readonly #parts: GitRoutesParts;

  constructor(parts: GitRoutesParts) {
    this.#parts = parts;
  }

  async handle(
    context: RequestContext,
    target: Exclude<Target, { kind: "malformed" }>,
    virtualHost: VirtualHost,
  ): Promise<void> {
    const lookedUpAt = performance.now();
    const policy = this.#policyOf(target);
    context.stage("cache_lookup", lookedUpAt);
    if (policy?.enabled === true) context.cacheRepo = `${policy.owner}/${policy.name}`;
    try {
      await this.#admitted(context, target, virtualHost, policy);
    } catch (error) {
      this.#failed(context, policy, target, error);
    }
  }

  /** Ends what is being sent, and closes the connections to the code host. */
  async close(): Promise<void> {
    await (await this.#parts.cached?.files.ifMade())?.close();
    await this.#parts.upstream.close();
  }

  #policyOf(target: Target): CachePolicy | undefined {
    if (this.#parts.cached === undefined || target.kind !== "repository") return undefined;
    return this.#parts.policies.find(target.owner, target.name);
  }

  async #admitted(
    context: RequestContext,
    target: Exclude<Target, { kind: "malformed" }>,
    virtualHost: VirtualHost,
    known: CachePolicy | undefined,
  ): Promise<void> {
    let policy = known;
    const { credentials, cached } = this.#parts;
    const { request } = context;
    const route = routeOf(target);
    const { methods } = route;
    if (methods.length > 0 && !methods.includes(request.method ?? "")) {
      const allowed = methods.join(", ");
      this.#refuse(context, target, policy, 405, `this address answers ${allowed}`, { Allow: allowed });
      return;
    }
    const given = upstreamHeaders(request.headers, undefined);
    const outgoing = [
      target.upstreamPath,
      decodeLoosely(target.upstreamPath),
      ...Object.values(given).flat(),
    ];
    if (outgoing.some((text) => credentials.carriesOwnToken(text))) {
      const message = "a token of this service is outside of Authorization; nothing was forwarded";
      this.#refuse(context, target, policy, 400, message);
      return;
    }
    const admittedAt = performance.now();
    const { admission, batch } = await this.#admit(context, target, Object.values(given).flat());
    context.stage("admission", admittedAt);
    context.principal = admission.principal;
    if (admission.kind === "refuse") {
      const { status, message, headers } = admission;
      this.#refuse(context, target, policy, status, message, headers);
      return;
    }
    if (cached !== undefined) {
      // After the admission, which may be the first use of the database after it was away.
      if (!cached.changes.isCurrent) {
        await cached.changes.refresh();
        policy = this.#policyOf(target);
      }
      // Before the code host has authorized the caller, these responses must not tell whether the repository is listed.
      if (!isEnsure(target) && !isSeed(target)) context.concludeCache(untouched(policy));
    }
    const { origin } = this.#parts.upstream;
    const gitRequest: GitRequest = {
      context,
      target,
      authorization: admission.authorization,
      renew: admission.renew,
      policy,
      relay: {
        // Made where it is needed: few responses redirect.
        get requested() {
          return new URL(target.upstreamPath, origin);
        },
        stripPrefix: virtualHost === "code_host" ? "" : this.#parts.basePath,
        allowElsewhere: route.redirects === "elsewhere",
        whenUnauthorized: explainUnauthorized(admission.whenUnauthorized, admission.authorization),
      },
    };
    if (batch !== undefined) {
      const observe = (response: UpstreamResponse): UpstreamResponse =>
        this.#observe(gitRequest, response, batch.level);
      await answerLfsBatch(this.#parts.upstream, gitRequest, batch, ownOrigin(context), observe);
      return;
    }
    if (isEnsure(target)) {
      if (cached === undefined) answerText(context, 404, "the cache of this service is off");
      else await (await cached.ensure.get()).handle({ ...gitRequest, target });
      return;
    }
    if (isSeed(target)) {
      if (cached === undefined) answerText(context, 404, "the cache of this service is off");
      else await (await cached.seed.get()).handle({ ...gitRequest, target });
      return;
    }
    const version = requestedProtocolVersion(singleHeader(request.headers["git-protocol"]));
    if (
      this.#parts.cached !== undefined &&
      policy?.enabled === true &&
      isUploadPack(target) &&
      version === 2
    ) {
      await this.#parts.cached.uploadPack.handle({ ...gitRequest, policy, target });
      return;
    }
    await this.#pass(gitRequest);
  }

  /** Answers a request that is not forwarded. The outcome does not depend on whether the repository is listed. */
  #refuse(
    context: RequestContext,
    target: Target,
    policy: CachePolicy | undefined,
    status: number,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ): void {
    if (this.#parts.cached !== undefined) context.concludeCache("rejected");
    const counts = context.request.method === "POST" && isUploadPack(target);
    if (policy?.enabled === true && counts) this.#parts.outcomes.request(context, policy, "rejected");
    answerText(context, status, message, headers);
  }

  /** The body of an LFS batch has its operation. For a token of this service it is read before the admission. */
  async #admit(
    context: RequestContext,
    target: Exclude<Target, { kind: "malformed" }>,
    headers: readonly string[],
  ): Promise<{ readonly admission: Admission; readonly batch?: LfsBatch }> {
    const { credentials } = this.#parts;
    const stray = credentials.foreignCredentialRefusal(() => [
      ...queryValues(splitTarget(target.upstreamPath).query),
      ...headers,
    ]);
    if (stray !== undefined) return { admission: stray };
    const { authorization } = context.request.headers;
    const action = actionOf(target, context.request.method ?? "");
    const isBatch =
      target.kind === "repository" &&
      target.tail.kind === "lfs" &&
      lfsOperation(context.request.method ?? "", target.upstreamPath) === "batch";
    if (!isBatch || presentedCredential(authorization).kind !== "own") {
      return { admission: await credentials.admit(authorization, action, context.remoteAddress) };
    }
    const caller = await credentials.authenticate(authorization, context.remoteAddress);
    if (caller.kind === "refuse") return { admission: caller };
    // The body of a batch is not read if the token does not allow downloads.
    const early = caller.permits(lfsPermissions(target.owner, target.name, "read"));
    if (early !== undefined) return { admission: early };
    const batch = await readLfsBatch(context, this.#parts.lfsBatches);
    const refusal = caller.permits(lfsPermissions(target.owner, target.name, batch.level));
    return { admission: refusal ?? (await caller.forward("git")), batch };
  }

  async #pass(request: GitRequest): Promise<void> {
    const { policy } = request;
    const passed: Passed = { status: 0, command: undefined, isProbe: false };
    const advertisement = policy?.enabled === true ? this.#advertisementOf(request) : undefined;
    try {
      await passThrough(this.#parts.upstream, request, this.#parts.bodyLimits, passed, (response) => {
        const observed = this.#observe(request, response);
        if (advertisement === undefined || policy === undefined) return observed;
        const followed = advertisement.follow(observed);
        const hasBundles = this.#parts.cached?.strict === false && offersBundles(policy);
        return hasBundles ? offerBundles(followed) : followed;
      });
      if (passed.status === 200) advertisement?.note();
    } catch (error) {
      const left = error instanceof GitError && error.code === "client_gone";
      this.#countPassed(request, passed, left ? "passthrough" : "error");
      throw error;
    }
    this.#countPassed(request, passed, "passthrough");
  }

  /** Reports a response to the access check. @param level of an LFS batch, if it is known */
  #observe(request: GitRequest, response: UpstreamResponse, level?: "read" | "write"): UpstreamResponse {
    const { target } = request;
    if (this.#parts.cached === undefined || target.kind !== "repository") return response;
    return observeResponse(this.#parts.cached.access, { ...request, target }, response, level);
  }

  /** @param result for a repository that is cached */
  #countPassed(request: GitRequest, passed: Passed, result: "passthrough" | "error"): void {
    const { context, target, policy } = request;
    if (this.#parts.cached === undefined || target.kind !== "repository") return;
    // git's probe before a large body belongs to the request that follows: one clone is one count.
    const isCommand = isUploadPack(target) && countsAlone(context);
    if (!isCommand && target.tail.kind !== "dumb_info_refs") return;
    if (policy === undefined)
      this.#parts.outcomes.nocache(context, target.owner, target.name, passed.status === 200);
    else this.#parts.outcomes.request(context, policy, policy.enabled ? result : "bypass");
  }

  /** Reads along where a cached repository's advertisement of protocol v2 passes. */
  #advertisementOf({ context, target }: GitRequest): AdvertisedFeatures | undefined {
    const { cached } = this.#parts;
    if (cached === undefined || target.kind !== "repository") return undefined;
    const { tail, owner, name } = target;
    if (tail.kind !== "info_refs" || tail.service !== "git-upload-pack") return undefined;
    if (requestedProtocolVersion(singleHeader(context.request.headers["git-protocol"])) !== 2) {
      return undefined;
    }
    return new AdvertisedFeatures(cached.cache.repository(owner, name));
  }

  /** Ends a request that failed: with its status, or by breaking a response that has begun. Logged once, here. */
  #failed(context: RequestContext, policy: CachePolicy | undefined, target: Target, error: unknown): void {
    const known = error instanceof GitError ? error : undefined;
    if (known?.code === "client_gone") {
      context.response.destroy();
      return;
    }
    if (policy?.enabled === true) {
      if (isUploadPack(target) && countsAlone(context))
        this.#parts.outcomes.request(context, policy, "error");
      else context.concludeCache("error");
    }
    this.#parts.logger.warn(
      { request_id: context.id, repo: context.cacheRepo, err: error },
      "a git request failed",
    );
    if (known === undefined) answerText(context, 500, `internal error; the log has more under ${context.id}`);
    else if (known.code === "busy") answerBusy(context, known.status, known.message, known.headers);
    else answerText(context, known.status, known.message, known.headers);
  }
}

/**
 * Reports a response to the access check. A refused request that reads deletes the authorization. A refused push, and a
 * redirect to a download, only end the remembered authorization: the next fetch causes a probe, and other requests are not
 * affected.
 */
function observeResponse(
  access: AccessCheck,
  request: RepositoryRequest,
  response: UpstreamResponse,
  level: "read" | "write" | undefined,
): UpstreamResponse {
  const { target, context, relay } = request;
  const { tail } = target;
  const operation =
    tail.kind === "lfs" ? lfsOperation(context.request.method ?? "", target.upstreamPath) : undefined;
  const writes = level === "write" || routeOf(target).permission === "write" || operation === "write";
  if (!writes && !isHandOver(target, response, relay)) return access.observe(request, response);
  if (isRefusal(response.status) || isRedirect(response.status)) access.forget(request);
  return response;
}

/** Whether a response sends a download to another server, as code hosts do for those that they allow. */
function isHandOver(target: Target, { status, headers }: UpstreamResponse, relay: RelayOptions): boolean {
  if (!isRedirect(status) || routeOf(target).redirects === "never") return false;
  return rewriteLocation(singleHeader(headers["location"]) ?? "", relay.requested, "").kind === "elsewhere";
}

function isUploadPack(target: Target): target is Extract<Target, { kind: "repository" }> {
  return target.kind === "repository" && target.tail.kind === "upload_pack";
}

function isEnsure(target: Target): target is Extract<Target, { kind: "repository" }> {
  return target.kind === "repository" && target.tail.kind === "ensure";
}

function isSeed(target: Target): target is Extract<Target, { kind: "repository" }> {
  return target.kind === "repository" && ["seed", "seed_file"].includes(target.tail.kind);
}

/** False for `ls-refs` and for git's probe before a large body: they belong to the fetch that follows. */
function countsAlone({ gitCommand, gitProbe }: RequestContext): boolean {
  return gitCommand !== "ls-refs" && !gitProbe;
}

/** Outcome of a request that the cache has no part in. */
function untouched(policy: CachePolicy | undefined): RequestResult {
  if (policy === undefined) return "nocache";
  return policy.enabled ? "passthrough" : "bypass";
}

/** The address of this service as the client wrote it. */
function ownOrigin({ request }: RequestContext): string {
  const encrypted = "encrypted" in request.socket || request.headers["x-forwarded-proto"] === "https";
  return `${encrypted ? "https" : "http"}://${request.headers.host ?? "localhost"}`;
}

/** Decodes each percent-encoding separately: a malformed one must not hide the others. */
function decodeLoosely(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
