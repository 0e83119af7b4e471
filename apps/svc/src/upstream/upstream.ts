import type { Readable } from "node:stream";
import { systemCode } from "@devplat/base";
import type { Dispatcher } from "undici";
import type { Metrics, UpstreamKind } from "../telemetry/metrics.ts";
import { ClientPlaces } from "../http/server/client-places.ts";
import { Late } from "../late.ts";
import { UpstreamConnections } from "./upstream-connections.ts";
import { GitError } from "./errors.ts";
import type { HeaderRecord } from "./headers.ts";
import { IdleTimer } from "../http/request/idle-timer.ts";

/**
 * Maximum connections to the code host for requests whose body a client is still sending, and the same number for all
 * others: clients that stall in their bodies must not block other requests. Further requests wait.
 */
export const MAX_CONNECTIONS = 256;
export interface UpstreamRequest {
  readonly kind: UpstreamKind;
  readonly method: string;
  /** Path and query below the origin of `host.url`. */
  readonly path: string;
  readonly headers: HeaderRecord;
  readonly body?: Buffer | AsyncIterable<Buffer>;
  /** Milliseconds without a byte from the code host, or to it, after which the request fails. */
  readonly idleMs: number;
  readonly signal?: AbortSignal;
  /** Address of the client that reads the response as it arrives and so holds the connection; undefined: none. */
  readonly client?: string;
  /** Gives the credential for one retry after a 401. A request whose body was consumed is not sent again. */
  readonly renew?: (() => Promise<string | undefined>) | undefined;
}

/** The code host's response. Its body must be read, or the response cancelled. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** True: after a 401 the credential was renewed, but the request's body was gone. */
  readonly renewed?: boolean;
  /** Chunks as they arrive. Reading throws GitError `upstream_timeout` or `upstream_unreachable`. */
  readonly chunks: AsyncIterable<Buffer>;
  /** Ends the request; the connection is not used again unless the body was read. */
  cancel(): void;
  /** Reads the body whole; longer ones are cut at `limit` bytes. */
  read(limit: number): Promise<Buffer>;
  /** The renewed credential that the response is for, if the code host refused the first one. */
  readonly renewedAuthorization?: string;
}

/** The same response with another body. */
export function withChunks(response: UpstreamResponse, chunks: AsyncIterable<Buffer>): UpstreamResponse {
  return { ...response, chunks, read: async (limit) => readUpTo(chunks, limit) };
}

/** The same response with a body that was read, so that several callers can be given it. */
export function withBody(response: UpstreamResponse, body: Buffer): UpstreamResponse {
  return {
    status: response.status,
    headers: { ...response.headers, "content-length": String(body.length) },
    chunks: {
      async *[Symbol.asyncIterator]() {
        yield body;
      },
    },
    cancel: () => undefined,
    read: () => Promise.resolve(body),
  };
}

async function readUpTo(chunks: AsyncIterable<Buffer>, limit: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size > limit) break;
  }
  return Buffer.concat(parts).subarray(0, limit);
}

interface Pools {
  readonly others: Dispatcher;
  /** For bodies that clients are still sending. */
  readonly uploads: Dispatcher;
}

/** Sends git and web requests to the code host. */
export class Upstream {
  readonly #pools: Late<Pools>;
  readonly #poolPlaces: ClientPlaces;
  readonly #uploadPlaces: ClientPlaces;
  readonly #metrics: Metrics;
  /** Host and port, for messages. */
  readonly name: string;
  readonly origin: string;

  /**
   * @param hostUrl `host.url`; only its origin counts here
   * @param connections default {@link MAX_CONNECTIONS}
   */
  constructor(options: {
    readonly hostUrl: string;
    readonly metrics: Metrics;
    readonly connections?: number;
    /** How the code host is reached; default: directly, with the system's trust. */
    readonly network?: UpstreamConnections;
  }) {
    const url = new URL(options.hostUrl);
    this.origin = url.origin;
    this.name = url.host;
    this.#metrics = options.metrics;
    const { network = new UpstreamConnections(), connections = MAX_CONNECTIONS } = options;
    // Their time-outs of responses are off: idle time-outs are per request and count both directions (IdleTimer).
    this.#pools = new Late(async () => ({
      others: await network.pool(url.origin, connections),
      uploads: await network.pool(url.origin, connections),
    }));
    this.#poolPlaces = new ClientPlaces(connections);
    this.#uploadPlaces = new ClientPlaces(connections);
  }

  /**
   * Sends a request and gives the response's head. Redirects are not followed.
   *
   * A body that is a Buffer is sent again, once, if the connection breaks before any response: a kept connection may be
   * closed by the other side just as it is used.
   *
   * @throws GitError `upstream_unreachable`, `upstream_timeout`, `client_gone` (the signal fired), and what the body throws
   */
  async send(request: UpstreamRequest): Promise<UpstreamResponse> {
    const response = await this.#sendFresh(request);
    if (response.status !== 401) return response;
    const renewed = await request.renew?.().catch((error: unknown) => {
      response.cancel();
      throw error;
    });
    if (renewed === undefined) return response;
    if (!isRepeatable(request)) return { ...response, renewed: true };
    response.cancel();
    const headers = { ...request.headers, authorization: renewed };
    return { ...(await this.#sendFresh({ ...request, headers })), renewedAuthorization: renewed };
  }

  async close(): Promise<void> {
    const pools = await this.#pools.ifMade();
    await Promise.all([pools?.others.destroy(), pools?.uploads.destroy()]);
  }

  async #sendFresh(request: UpstreamRequest): Promise<UpstreamResponse> {
    try {
      return await this.#send(request);
    } catch (error) {
      const again = error instanceof GitError && isStaleConnection(error.cause) && isRepeatable(request);
      if (!again) throw error;
      return await this.#send(request);
    }
  }

  async #send(request: UpstreamRequest): Promise<UpstreamResponse> {
    const { signal } = request;
    const controller = new AbortController();
    const cancel = (): void => controller.abort();
    let timedOut = false;
    const idle = new IdleTimer(request.idleMs, () => {
      timedOut = true;
      controller.abort();
    });
    let leavePlace: (() => void) | undefined;
    const release = (): void => {
      idle.stop();
      leavePlace?.();
      signal?.removeEventListener("abort", cancel);
    };
    let bodyError: unknown;
    const explain = (error: unknown): GitError => {
      if (bodyError instanceof GitError) return bodyError;
      return this.#explain(error, timedOut, signal?.aborted === true, request);
    };
    // This listener is needed because undici reads the signal only once it has a connection for the request.
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => undefined);
    controller.signal.addEventListener("abort", () => aborted.reject(controller.signal.reason), {
      once: true,
    });
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted === true) cancel();
    const startedAt = performance.now();
    let response: Dispatcher.ResponseData;
    try {
      const { body, client } = request;
      const streamed = body !== undefined && !Buffer.isBuffer(body);
      if (client !== undefined) {
        const places = streamed ? this.#uploadPlaces : this.#poolPlaces;
        leavePlace = await places.take(client, controller.signal);
      }
      const { others, uploads } = await this.#pools.get();
      const sent = streamed
        ? (watched(body, idle, (error) => (bodyError = error)) as unknown as Readable)
        : body;
      const asked = (streamed ? uploads : others).request({
        origin: this.origin,
        method: request.method,
        path: request.path,
        headers: request.headers,
        signal: controller.signal,
        ...(sent === undefined ? {} : { body: sent }),
      });
      asked.then(
        (late) => {
          if (!controller.signal.aborted) return;
          late.body.on("error", () => undefined);
          late.body.destroy();
        },
        () => undefined,
      );
      response = await Promise.race([asked, aborted.promise]);
    } catch (error) {
      release();
      this.#metrics.upstream(request.kind, 0, (performance.now() - startedAt) / 1000);
      throw explain(error);
    }
    idle.touch();
    this.#metrics.upstream(request.kind, response.statusCode, (performance.now() - startedAt) / 1000);
    const body = response.body;
    // Without a listener an abort of an unread body would end the process.
    body.on("error", () => undefined);
    body.once("close", release);
    const chunks = readChunks(body, idle, explain);
    return {
      status: response.statusCode,
      headers: response.headers,
      chunks,
      cancel: () => {
        release();
        body.destroy();
      },
      read: async (limit) => readUpTo(chunks, limit),
    };
  }

  #explain(error: unknown, timedOut: boolean, clientGone: boolean, request: UpstreamRequest): GitError {
    if (timedOut) {
      const seconds = request.idleMs / 1000;
      return new GitError("upstream_timeout", 504, `${this.name} did not answer for ${seconds} seconds`);
    }
    if (clientGone) return new GitError("client_gone", 499, "the client left");
    const code = systemCode(error) ?? "no connection";
    return new GitError("upstream_unreachable", 502, `${this.name} cannot be reached (${code})`, {
      cause: error,
    });
  }
}

/** The chunks of a response; the time-out does not run while the reader is busy with one. */
async function* readChunks(
  body: AsyncIterable<Buffer>,
  idle: IdleTimer,
  explain: (error: unknown) => GitError,
): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of body) {
      idle.pause();
      yield chunk;
      idle.resume();
    }
  } catch (error) {
    throw explain(error);
  } finally {
    idle.stop();
  }
}

/**
 * Chunks of a request's body: each one that is taken shows that the other side is alive. Time does not count while the
 * client has not sent the next one: that has a limit of its own.
 */
async function* watched(
  body: AsyncIterable<Buffer>,
  idle: IdleTimer,
  failed: (error: unknown) => void,
): AsyncGenerator<Buffer> {
  try {
    idle.pause();
    for await (const chunk of body) {
      idle.resume();
      yield chunk;
      idle.pause();
    }
  } catch (error) {
    failed(error);
    throw error;
  } finally {
    idle.resume();
  }
}

function isStaleConnection(error: unknown): boolean {
  return ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes(systemCode(error) ?? "");
}

function isRepeatable(request: UpstreamRequest): boolean {
  if (request.signal?.aborted === true) return false;
  return request.body === undefined
    ? ["GET", "HEAD"].includes(request.method)
    : Buffer.isBuffer(request.body);
}
