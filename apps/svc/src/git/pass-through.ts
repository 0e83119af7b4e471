import type { IncomingMessage } from "node:http";
import { constants, gunzipSync } from "node:zlib";
import { FLUSH_PKT, requestedProtocolVersion } from "@devplat/git-protocol";
import { bodyChunks } from "../http/request/body-chunks.ts";
import { hasBody } from "../http/request/has-body.ts";
import type { UpstreamKind } from "../telemetry/metrics.ts";
import { GitError } from "../upstream/errors.ts";
import type { GitRequest } from "./git-request.ts";
import { singleHeader, upstreamHeaders } from "../upstream/headers.ts";
import { relay } from "./relay.ts";
import type { UploadLimit } from "./upload-limit.ts";
import type { Upstream, UpstreamResponse } from "../upstream/upstream.ts";

/** Seconds without a byte, for requests outside of listed repositories: pushes are checked, packs are counted. */
const PASS_THROUGH_IDLE_SECONDS = 300;
/** Seconds of silence before a ref advertisement of an unlisted repository (mission 000, timeout_seconds' default). */
const INFO_REFS_IDLE_SECONDS = 30;
/** Bytes of a gzip body that are inflated to see which command it starts with; they give at most 1 MiB. */
const PEEK_BYTES = 1024;

/** Limits of a body that a client sends. */
export interface BodyLimits {
  /** Milliseconds without a byte of it after which it is given up. */
  readonly idleMs: number;
  readonly uploads: UploadLimit;
}

/** Facts about a forwarded request. They are set step by step, so that a failed request has them too. */
export interface Passed {
  /** The code host's; 0: it has not answered. */
  status: number;
  /** The command that the body starts with, where it is one of protocol v2. */
  command: string | undefined;
  /** Whether the body is a flush-pkt alone: git's test of the credential before a large body. */
  isProbe: boolean;
}

/**
 * Sees the code host's response before the client does.
 *
 * @returns the response to relay
 */
export type ResponseObserver = (response: UpstreamResponse) => UpstreamResponse;

/**
 * Forwards a request unchanged, and relays its response, both as streams.
 *
 * @throws GitError `body_too_slow`, `busy`, and what {@link Upstream.send} throws
 */
export async function passThrough(
  upstream: Upstream,
  request: GitRequest,
  limits: BodyLimits,
  passed: Passed,
  observe: ResponseObserver,
): Promise<void> {
  const { context, target } = request;
  const incoming = context.request;
  const headers = upstreamHeaders(incoming.headers, request.authorization);
  const end = hasBody(incoming) ? limits.uploads.begin(context.remoteAddress) : undefined;
  const body = end === undefined ? undefined : new PeekedBody(incoming, limits.idleMs, end);
  const length = incoming.headers["content-length"];
  if (body !== undefined && length !== undefined) headers["content-length"] = length;
  const version = requestedProtocolVersion(singleHeader(incoming.headers["git-protocol"]));
  context.continue();
  const startedAt = performance.now();
  try {
    const response = await upstream.send({
      kind: kindOf(request),
      method: incoming.method ?? "GET",
      path: target.upstreamPath,
      headers,
      ...(body === undefined ? {} : { body }),
      idleMs: idleSeconds(request) * 1000,
      signal: context.gone,
      client: context.remoteAddress,
      renew: request.renew,
    });
    context.timing("upstream", performance.now() - startedAt);
    passed.status = response.status;
    await relay(context, observe(response), request.relay);
  } finally {
    end?.();
    passed.command = version === 2 ? body?.command : undefined;
    passed.isProbe = body?.isProbe === true;
    context.gitCommand = passed.command;
    context.gitProbe = passed.isProbe;
  }
}

function kindOf({ target }: GitRequest): UpstreamKind {
  return target.kind === "repository" && target.tail.kind === "info_refs" ? "info_refs" : "pass_through";
}

function idleSeconds({ target, policy }: GitRequest): number {
  if (target.kind !== "repository" || target.tail.kind === "receive_pack") return PASS_THROUGH_IDLE_SECONDS;
  if (policy?.enabled === true) return policy.timeoutSeconds;
  return target.tail.kind === "info_refs" ? INFO_REFS_IDLE_SECONDS : PASS_THROUGH_IDLE_SECONDS;
}

/** A request's body as it comes, with a look at its first bytes. */
class PeekedBody implements AsyncIterable<Buffer> {
  readonly #request: IncomingMessage;
  readonly #idleMs: number;
  readonly #onEnd: () => void;
  #first: Buffer | undefined;

  /** @param onEnd called when the client need send no more */
  constructor(request: IncomingMessage, idleMs: number, onEnd: () => void) {
    this.#request = request;
    this.#idleMs = idleMs;
    this.#onEnd = onEnd;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of bodyChunks(this.#request, this.#idleMs, (...why) => new GitError(...why))) {
        this.#first ??= chunk;
        yield chunk;
      }
    } finally {
      this.#onEnd();
    }
  }

  get isProbe(): boolean {
    return this.#request.headers["content-length"] === "4" && this.#first?.equals(FLUSH_PKT) === true;
  }

  /** The command that the body starts with; undefined if its first chunk does not show one. */
  get command(): string | undefined {
    let bytes = this.#first;
    if (bytes === undefined) return undefined;
    if (/gzip/i.test(this.#request.headers["content-encoding"] ?? "")) {
      try {
        bytes = gunzipSync(bytes.subarray(0, PEEK_BYTES), { finishFlush: constants.Z_SYNC_FLUSH });
      } catch {
        return undefined;
      }
    }
    return /^[0-9a-f]{4}command=([a-z0-9-]+)/.exec(bytes.toString("latin1", 0, 64))?.[1];
  }
}
