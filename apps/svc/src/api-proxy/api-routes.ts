import type { Logger } from "@devplat/base";
import { principalActor } from "../identity/audit-source.ts";
import type { AuditOutcome, AuditTrail } from "../audit/audit-event.ts";
import type { CodeHost } from "../code-host/code-host.ts";
import { explainUnauthorized } from "../code-host/refusal-words.ts";
import type { RequestContext } from "../http/request/request-context.ts";
import { hasBody } from "../http/request/has-body.ts";
import type { ApiHandler } from "../http/server/listener.ts";
import type { VirtualHost } from "../http/routing/virtual-host.ts";
import { queryValues, splitTarget } from "../http/routing/target.ts";
import type { OwnAddress } from "../own-address.ts";
import type { Caller, CredentialCheck, Forward, Refusal } from "../tokens/admission.ts";
import { isUnlimited } from "../scopes/token-limits.ts";
import { ApiAddresses, type ApiTarget } from "../http/routing/api-address.ts";
import { sendApiError } from "./api-response.ts";
import { forwardedHeaders } from "./api-headers.ts";
import { ApiRelay } from "./api-relay.ts";
import type { ApiUpstream } from "./api-upstream.ts";
import { SAME_VIEW, pathView, type ApiView } from "./api-view.ts";
import { ApiError } from "./errors.ts";
import type { Admitted, LimitedRequests } from "./limited-requests.ts";
import { clientBody } from "./request-body.ts";
import { WithheldFields } from "./withheld-fields.ts";

const METHODS: readonly string[] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

export interface ApiRoutesParts {
  readonly codeHost: CodeHost;
  readonly credentials: CredentialCheck;
  readonly limited: LimitedRequests;
  readonly upstream: ApiUpstream;
  readonly address: OwnAddress;
  readonly audit: AuditTrail;
  readonly logger: Logger;
}

/** The proxy of the code host's API: authentication, authorization, and then a stream in both directions. */
export class ApiRoutes implements ApiHandler {
  readonly #parts: ApiRoutesParts;
  readonly #addresses: ApiAddresses;

  constructor(parts: ApiRoutesParts) {
    this.#parts = parts;
    this.#addresses = new ApiAddresses(parts.codeHost);
  }

  accepts(virtualHost: VirtualHost, requestTarget: string): boolean {
    return this.#addresses.accepts(virtualHost, requestTarget);
  }

  async handle(context: RequestContext, virtualHost: VirtualHost): Promise<void> {
    const url = context.request.url ?? "";
    const target = this.#addresses.find(virtualHost, url);
    if (target === undefined) {
      sendApiError(context, 404, `Nothing of the code host's API is at ${splitTarget(url).path}`);
      return;
    }
    try {
      await this.#serve(context, target, virtualHost);
    } catch (error) {
      this.#failed(context, error);
    }
  }

  async #serve(context: RequestContext, target: ApiTarget, virtualHost: VirtualHost): Promise<void> {
    const { credentials, limited } = this.#parts;
    const { request } = context;
    const fault = requestFault(context, target, (text) => credentials.carriesOwnToken(text));
    if (fault !== undefined) {
      sendApiError(context, fault.status, fault.message, fault.headers);
      return;
    }
    const stray = credentials.foreignCredentialRefusal(() => [
      ...queryValues(target.query),
      ...Object.values(forwardedHeaders(request.headers, undefined)).flat(),
    ]);
    if (stray !== undefined) {
      this.#refuse(context, target, stray);
      return;
    }
    const admittedAt = performance.now();
    const caller = await credentials.authenticate(request.headers.authorization, context.remoteAddress);
    if (caller.kind === "refuse") {
      this.#refuse(context, target, caller);
      return;
    }
    context.principal = caller.principal;
    const credential = once(async () => caller.forward("api"));
    const isLimited = caller.limits !== undefined && !isUnlimited(caller.limits);
    const admitted = isLimited
      ? await limited.admit(context, target, caller, credential)
      : asItCame(context, target);
    context.stage("admission", admittedAt);
    if (admitted.kind === "refuse") {
      this.#refuse(context, target, admitted);
      return;
    }
    const forward = await credential();
    if (forward.kind === "refuse") {
      this.#refuse(context, target, forward);
      return;
    }
    context.continue();
    await this.#forward(context, target, virtualHost, admitted, forward, caller);
  }

  async #forward(
    context: RequestContext,
    target: ApiTarget,
    virtualHost: VirtualHost,
    admitted: Admitted,
    forward: Forward,
    caller: Caller,
  ): Promise<void> {
    const { upstream } = this.#parts;
    const { request } = context;
    const url = new URL(`${target.base}${target.path === "" ? "" : admitted.path}`);
    url.search = admitted.query;
    const streamed = admitted.body === undefined && hasBody(request);
    // Other credentials may be limited too, by the border policy, and are the caller's own.
    const token = caller.principal.tokenId === undefined ? undefined : caller.limits;
    const send = async (authorization: string | undefined): Promise<ApiRelay> => {
      const headers = forwardedHeaders(request.headers, authorization, token === undefined);
      if (admitted.contentType !== undefined) headers["content-type"] = admitted.contentType;
      const length = request.headers["content-length"];
      if (streamed && length !== undefined) headers["content-length"] = length;
      const relay = new ApiRelay(
        context,
        this.#view(context, virtualHost),
        token,
        forward.whenUnauthorized !== undefined,
      );
      const withheld = admitted.withheld && new WithheldFields(relay, admitted.withheld);
      if (withheld !== undefined) {
        headers["accept-encoding"] = "identity";
        delete headers["range"];
      }
      await upstream.send(
        {
          method: request.method ?? "GET",
          url,
          headers,
          body: streamed ? clientBody(request) : admitted.body,
          changesNothing: !admitted.writes,
          signal: context.gone,
          client: context.remoteAddress,
        },
        withheld ?? relay,
      );
      if (withheld?.unreadable === true) {
        throw new ApiError(
          "upstream_unreachable",
          502,
          `${url.host} answered something that is not understood`,
        );
      }
      return relay;
    };
    let relay = await send(forward.authorization);
    const explain = explainUnauthorized(forward.whenUnauthorized, forward.authorization);
    if (relay.unauthorized !== undefined && explain !== undefined) {
      const renewed = await forward.renew?.();
      // A body that was streamed is gone: the next request finds the renewed credential.
      if (renewed !== undefined && !streamed) relay = await send(renewed);
      const { unauthorized } = relay;
      if (unauthorized !== undefined) {
        const text = explain({ ...unauthorized, renewed: renewed !== undefined && streamed });
        sendApiError(context, 403, text);
      }
    }
    this.#recordWrite(context, admitted, relay.status ?? 0, caller);
  }

  #view({ request }: RequestContext, virtualHost: VirtualHost): ApiView {
    if (virtualHost !== "management") return SAME_VIEW;
    const { codeHost, address } = this.#parts;
    const origin = `${address.isHttps ? "https" : "http"}://${request.headers.host ?? new URL(address.baseUrl).host}`;
    const rest = codeHost.kind === "gitea" ? "/api/v1" : "/api/v3";
    return pathView([
      [codeHost.graphqlUrl ?? codeHost.apiUrl, `${origin}/api/graphql`],
      [codeHost.apiUrl, origin + rest],
      ...(codeHost.uploadsUrl === undefined ? [] : [[codeHost.uploadsUrl, `${origin}/api/uploads`] as const]),
    ]);
  }

  #refuse(context: RequestContext, target: ApiTarget, refusal: Refusal): void {
    context.principal ??= refusal.principal;
    sendApiError(context, refusal.status, refusal.message, refusal.headers);
    this.#parts.audit.record({
      action: "access.denied",
      outcome: "denied",
      actor: principalActor(context.principal),
      target: target.prefix + target.path,
      remoteAddress: context.remoteAddress,
      requestId: context.id,
      details: { status: refusal.status, method: context.request.method ?? "" },
    });
  }

  #recordWrite(context: RequestContext, admitted: Admitted, status: number, caller: Caller): void {
    if (!admitted.writes) return;
    const outcome: AuditOutcome =
      status > 0 && status < 400 ? "allowed" : [401, 403, 404].includes(status) ? "denied" : "failed";
    this.#parts.audit.record({
      action: "api.write",
      outcome,
      actor: principalActor(caller.principal),
      target: admitted.action,
      remoteAddress: context.remoteAddress,
      requestId: context.id,
      details: { status, method: context.request.method ?? "" },
    });
  }

  /** Ends a request that failed: with its status, or by breaking a response that has begun. Logged once, here. */
  #failed(context: RequestContext, error: unknown): void {
    const known = error instanceof ApiError ? error : undefined;
    if (known?.code === "client_gone") {
      context.response.destroy();
      return;
    }
    this.#parts.logger.warn({ request_id: context.id, err: error }, "a request of the API failed");
    if (known === undefined) {
      sendApiError(context, 500, `internal error; the log has more under ${context.id}`);
    } else sendApiError(context, known.status, known.message);
  }
}

/** A request without a token of this service, or with one for everything, is not checked. */
function asItCame({ request }: RequestContext, target: ApiTarget): Admitted {
  return {
    kind: "admitted",
    path: target.path === "" ? "/" : target.path,
    query: target.query,
    body: undefined,
    // Whether a query writes is in its body, which streams by.
    writes: target.kind !== "graphql" && request.method !== "GET" && request.method !== "HEAD",
    action: target.prefix + target.path,
  };
}

interface Fault {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The fault of a request, for every caller. */
function requestFault(
  { request }: RequestContext,
  target: ApiTarget,
  carriesOwnToken: (text: string) => boolean,
): Fault | undefined {
  const method = request.method ?? "";
  if (!METHODS.includes(method)) {
    const allow = METHODS.join(", ");
    return { status: 405, message: `The API is proxied for ${allow}`, headers: { Allow: allow } };
  }
  // A path that climbs would leave the interface that it was taken for.
  if (/(?:^|\/)(?:\.|%2e){1,2}(?:\/|%2f|\\|%5c|$)/i.test(target.path) || /[\\\s]/.test(target.path)) {
    return { status: 400, message: "The path has a dot segment, or a character that is not allowed" };
  }
  const given = Object.values(forwardedHeaders(request.headers, undefined)).flat();
  if (
    [target.path, target.query].some((text) => carriesOwnToken(text) || carriesOwnToken(decodeLoosely(text)))
  ) {
    return { status: 400, message: "A token of this service is in the address; nothing was forwarded" };
  }
  if (given.some(carriesOwnToken)) {
    return {
      status: 400,
      message: "A token of this service is outside of Authorization; nothing was forwarded",
    };
  }
  return undefined;
}

/** Decodes each percent-encoding separately: a malformed one must not hide the others. */
function decodeLoosely(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}

function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  let asked: Promise<Value> | undefined;
  return async () => (asked ??= ask());
}
