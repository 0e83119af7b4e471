import { hash } from "node:crypto";
import { isRefusal } from "../upstream/response-status.ts";
import { ProtocolError, decodeLsRefsRequest, type EncodedCommand } from "@devplat/git-protocol";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AccessCheck } from "../access/access-check.ts";
import type { CommandResponse } from "./command-response.ts";
import type { CachedRequest } from "./git-request.ts";
import { upstreamHeaders, isUploadPackResult } from "../upstream/headers.ts";
import type { Outcomes } from "./outcome.ts";
import { LsRefsBodies, type LsRefsBody } from "../access/ls-refs-body.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

/** Authorization of a client's own `ls-refs`. */
export interface LsRefsAuthorization {
  /** When the request to the code host was sent. */
  readonly sentAt: number;
  /** The credential that the code host accepted: the request's own, or the one that replaced it after a 401. */
  readonly credential: string | undefined;
}

/** Forwards an `ls-refs`. An authorization is recorded before the last byte of the response is relayed. */
export class LsRefsCommand {
  readonly #upstream: Upstream;
  readonly #access: AccessCheck;
  readonly #outcomes: Outcomes;
  readonly #metrics: Metrics;
  /** Bodies of all clients are compared. The bytes of one client are never sent to another. */
  readonly #bodies = new LsRefsBodies();

  constructor(options: {
    readonly upstream: Upstream;
    readonly access: AccessCheck;
    readonly outcomes: Outcomes;
    readonly metrics: Metrics;
  }) {
    this.#upstream = options.upstream;
    this.#access = options.access;
    this.#outcomes = options.outcomes;
    this.#metrics = options.metrics;
  }

  /** @returns undefined if the code host did not authorize it: then the whole response is ended. @throws GitError */
  async run(
    request: CachedRequest,
    command: EncodedCommand,
    response: CommandResponse,
  ): Promise<LsRefsAuthorization | undefined> {
    const sentAt = this.#access.now();
    const startedAt = performance.now();
    this.#metrics.lsRefsForwarded();
    const sent = this.#upstream.send({
      kind: "ls_refs",
      method: "POST",
      path: request.target.upstreamPath,
      headers: commandHeaders(request),
      body: command.bytes,
      idleMs: request.policy.timeoutSeconds * 1000,
      signal: request.context.gone,
      client: request.context.remoteAddress,
      renew: request.renew,
    });
    const received = await sent.catch((error: unknown) => {
      // Not counted: only a refused ls-refs is.
      request.context.concludeCache("error");
      throw error;
    });
    request.context.timing("upstream", performance.now() - startedAt);
    const upstream = this.#access.observe(request, received);
    if (!isUploadPackResult(upstream)) {
      if (isRefusal(upstream.status)) this.#outcomes.request(request.context, request.policy, "rejected");
      else request.context.concludeCache("error");
      await response.endRefused(upstream, request.relay);
      return undefined;
    }
    response.beginRelayed(upstream, request.relay);
    const { refPrefixes } = decodeLsRefsRequest(command.request);
    const credential = upstream.renewedAuthorization ?? request.authorization;
    const access = { authorization: credential, target: request.target };
    const body = this.#bodies.begin(`${request.target.upstreamPath} ${hash("sha256", command.bytes)}`);
    let isAuthorized = false;
    try {
      isAuthorized = await this.#relayBody(upstream, response, body, async (bytes) => {
        await this.#access.recordAuthorization(access, sentAt, refPrefixes, bytes);
      });
    } finally {
      body.leave();
    }
    if (isAuthorized) return { sentAt, credential };
    request.context.concludeCache("error");
    response.end();
    return undefined;
  }

  /** Relays the body as it comes, but its end only after an authorization is recorded. */
  async #relayBody(
    upstream: UpstreamResponse,
    response: CommandResponse,
    body: LsRefsBody,
    record: (bytes: Buffer | undefined) => Promise<void>,
  ): Promise<boolean> {
    let held: Buffer | undefined;
    for await (const chunk of upstream.chunks) {
      if (held !== undefined) await response.write(held);
      held = undefined;
      body.push(chunk);
      // A client may send its fetch as soon as it has the flush-pkt: the authorization must be there by then.
      if (body.isWhole) held = chunk;
      else await response.write(chunk);
    }
    let isAuthorized = body.isWhole;
    if (isAuthorized) {
      try {
        await record(body.bytes);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        isAuthorized = false;
      }
    }
    if (held !== undefined) await response.write(held);
    return isAuthorized;
  }
}

/** Headers of a command of a client: its own, but the body is sent inflated. */
export function commandHeaders(request: CachedRequest): ReturnType<typeof upstreamHeaders> {
  const headers = upstreamHeaders(request.context.request.headers, request.authorization);
  delete headers["content-encoding"];
  return headers;
}
