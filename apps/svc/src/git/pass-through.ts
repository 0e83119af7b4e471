import type { IncomingMessage } from "node:http";
import { constants, gunzipSync } from "node:zlib";
import { requestedProtocolVersion } from "@devplat/git-protocol";
import type { UpstreamKind } from "../telemetry/metrics.ts";
import { GitError } from "./errors.ts";
import type { GitRequest } from "./git-request.ts";
import { singleHeader, upstreamHeaders } from "./headers.ts";
import { relay } from "./relay.ts";
import type { Upstream } from "./upstream.ts";

/** Seconds of silence on anything that is not a listed repository's: pushes are checked, packs are counted. */
export const PASS_THROUGH_IDLE_SECONDS = 300;
/** Seconds of silence before a ref advertisement of an unlisted repository (mission 000, timeout_seconds' default). */
const INFO_REFS_IDLE_SECONDS = 30;
/** Bytes of a gzip body that are inflated to see which command it starts with; they give at most 1 MiB. */
const PEEK_BYTES = 1024;

/** What passed. */
export interface Passed {
  readonly status: number;
  /** The command that the body starts with, where it is one of protocol v2. */
  readonly command: string | undefined;
}

/**
 * Sends a request on as it is, and its answer back, both as streams.
 *
 * @param onStatus told the status before the client is
 * @throws GitError
 */
export async function passThrough(
  upstream: Upstream,
  request: GitRequest,
  onStatus: (status: number) => void,
): Promise<Passed> {
  const { exchange, target } = request;
  const incoming = exchange.request;
  const method = incoming.method ?? "GET";
  const headers = upstreamHeaders(incoming.headers, request.authorization);
  const body = hasBody(incoming) ? new PeekedBody(incoming) : undefined;
  const length = incoming.headers["content-length"];
  if (body !== undefined && length !== undefined) headers["content-length"] = length;
  exchange.continue();
  const startedAt = performance.now();
  const answer = await upstream.send({
    kind: kindOf(request),
    method,
    path: target.upstreamPath,
    headers,
    ...(body === undefined ? {} : { body }),
    idleMs: idleSeconds(request) * 1000,
    signal: exchange.gone,
  });
  exchange.timing("upstream", performance.now() - startedAt);
  onStatus(answer.status);
  await relay(exchange, answer, request.relay);
  const version = requestedProtocolVersion(singleHeader(incoming.headers["git-protocol"]));
  return { status: answer.status, command: version === 2 ? body?.command : undefined };
}

function kindOf({ target }: GitRequest): UpstreamKind {
  return target.kind === "repository" && target.tail.kind === "info_refs" ? "info_refs" : "pass_through";
}

function idleSeconds({ target, policy }: GitRequest): number {
  if (target.kind !== "repository" || target.tail.kind === "receive_pack") return PASS_THROUGH_IDLE_SECONDS;
  if (policy?.enabled === true) return policy.timeoutSeconds;
  return target.tail.kind === "info_refs" ? INFO_REFS_IDLE_SECONDS : PASS_THROUGH_IDLE_SECONDS;
}

function hasBody(request: IncomingMessage): boolean {
  const length = request.headers["content-length"];
  return request.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

/** A request's body as it comes, with a look at its first bytes. */
class PeekedBody implements AsyncIterable<Buffer> {
  readonly #request: IncomingMessage;
  #first: Buffer | undefined;

  constructor(request: IncomingMessage) {
    this.#request = request;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    // Not destroyed with the iterator: the connection is still needed for an answer.
    const chunks = this.#request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    for await (const chunk of chunks) {
      this.#first ??= chunk;
      yield chunk;
    }
    if (!this.#request.complete) throw new GitError("client_gone", 499, "the client left");
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
