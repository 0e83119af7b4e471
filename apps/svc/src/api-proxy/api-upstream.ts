import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { systemCode } from "@devplat/base";
import type { Dispatcher } from "undici";
import { IdleTimer } from "../http/request/idle-timer.ts";
import { ClientPlaces } from "../http/server/client-places.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { UpstreamConnections } from "../upstream/upstream-connections.ts";
import type { ApiHeaders } from "./api-headers.ts";
import { ApiError } from "./errors.ts";

/** Concurrent connections to one origin of the API. Further requests wait. */
const MAX_CONNECTIONS = 256;
/** Milliseconds without a byte from or to the code host. Its own time limit is much shorter. */
const API_IDLE_MS = 120_000;
/** Maximum bytes of a response to a request of the service. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

export interface ApiRequest {
  readonly method: string;
  /** Whole address. */
  readonly url: URL;
  readonly headers: ApiHeaders;
  readonly body?: string | AsyncIterable<Buffer> | undefined;
  /** Whether it only reads, although its method could write, as a query of GraphQL. Default false. */
  readonly changesNothing?: boolean;
  readonly signal?: AbortSignal;
  /** Address of the client that reads the response as it arrives and so holds the connection; undefined: none. */
  readonly client?: string;
}

/** Receiver of a response as it arrives. */
export interface ResponseSink {
  /** The head. @returns false: the response is not wanted after all */
  head(status: number, headers: IncomingHttpHeaders): boolean;
  /** @returns false: wait for {@link ResponseFlow.resume} before giving more */
  data(chunk: Buffer, flow: ResponseFlow): boolean;
  end(): void;
}

export interface ResponseFlow {
  resume(): void;
}

/** Requests to the API of the code host, over few kept connections. */
export class ApiUpstream {
  readonly #connections: UpstreamConnections;
  readonly #metrics: Metrics;
  readonly #idleMs: number;
  readonly #maxConnections: number;
  readonly #pools = new Map<
    string,
    { readonly connections: Promise<Dispatcher>; readonly places: ClientPlaces }
  >();

  /** @param idleMs default {@link API_IDLE_MS} @param maxConnections to one origin; default {@link MAX_CONNECTIONS} */
  constructor(parts: {
    readonly connections: UpstreamConnections;
    readonly metrics: Metrics;
    readonly idleMs?: number;
    readonly maxConnections?: number;
  }) {
    this.#connections = parts.connections;
    this.#metrics = parts.metrics;
    this.#idleMs = parts.idleMs ?? API_IDLE_MS;
    this.#maxConnections = parts.maxConnections ?? MAX_CONNECTIONS;
  }

  /**
   * Sends a request and passes the response to the sink. Redirects are not followed. If a kept connection turns out to be
   * closed, a request that only reads and whose body is not streamed is sent again once. Another request could have been
   * executed already (RFC 9110 section 9.2.2).
   *
   * @returns whether the sink got the whole response; false: the sink rejected it
   * @throws ApiError `upstream_unreachable`, `upstream_timeout`, `client_gone`, and what the body throws
   */
  async send(request: ApiRequest, sink: ResponseSink): Promise<boolean> {
    const { body, method, changesNothing = false } = request;
    const repeatable = typeof body !== "object" && (changesNothing || isSafe(method));
    let begun = false;
    const watched: ResponseSink = {
      head(status, headers) {
        begun = true;
        return sink.head(status, headers);
      },
      data: (chunk, flow) => sink.data(chunk, flow),
      end: () => sink.end(),
    };
    try {
      return await this.#send(request, watched);
    } catch (error) {
      // A connection that breaks within a response was not stale, and the client has the first bytes.
      if (begun || !repeatable || !(error instanceof ApiError) || !isStale(error.cause)) throw error;
      return await this.#send(request, sink);
    }
  }

  /** Sends a request of the service. Undefined: the response is not JSON with status 200. @throws ApiError */
  async ask(request: ApiRequest): Promise<unknown> {
    const chunks: Buffer[] = [];
    let size = 0;
    let wanted = false;
    await this.send(
      { ...request, changesNothing: true },
      {
        head: (status) => (wanted = status === 200),
        data: (chunk) => {
          size += chunk.length;
          if (size <= MAX_RESPONSE_BYTES) chunks.push(chunk);
          return true;
        },
        end: () => undefined,
      },
    );
    if (!wanted || size > MAX_RESPONSE_BYTES) return undefined;
    try {
      return JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
    } catch {
      return undefined;
    }
  }

  async close(): Promise<void> {
    // The requests of a failed connection got its error.
    await Promise.allSettled(
      [...this.#pools.values()].map(async ({ connections }) => (await connections).destroy()),
    );
  }

  async #send(request: ApiRequest, sink: ResponseSink): Promise<boolean> {
    const { url, client, signal } = request;
    const { connections: made, places } = this.#pool(url.origin);
    const connections = await made;
    if (client === undefined) return this.#dispatch(connections, request, sink);
    const waiting = AbortSignal.any([
      AbortSignal.timeout(this.#idleMs),
      ...(signal === undefined ? [] : [signal]),
    ]);
    const leavePlace = await places.take(client, waiting).catch((error: unknown) => {
      throw explained(error, signal?.aborted !== true, url, signal?.aborted === true, this.#idleMs);
    });
    try {
      return await this.#dispatch(connections, request, sink);
    } finally {
      leavePlace();
    }
  }

  async #dispatch(connections: Dispatcher, request: ApiRequest, sink: ResponseSink): Promise<boolean> {
    const { url, signal } = request;
    const startedAt = performance.now();
    return new Promise((resolve, reject) => {
      const flight = new Flight(sink, this.#idleMs, {
        status: (status) => this.#metrics.upstream("api", status, (performance.now() - startedAt) / 1000),
        done: resolve,
        failed: (error, timedOut) =>
          reject(explained(error, timedOut, url, signal?.aborted === true, this.#idleMs)),
      });
      if (signal !== undefined) flight.watch(signal);
      const { body } = request;
      connections.dispatch(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method: request.method,
          headers: request.headers,
          // Node's streams and any iterable of chunks are taken; the type knows streams only.
          body: (typeof body === "object" ? flight.sent(body) : (body ?? null)) as Readable | string | null,
        },
        flight,
      );
    });
  }

  #pool(origin: string): { readonly connections: Promise<Dispatcher>; readonly places: ClientPlaces } {
    let pool = this.#pools.get(origin);
    if (pool === undefined) {
      const connections = this.#connections.pool(origin, this.#maxConnections);
      pool = { connections, places: new ClientPlaces(this.#maxConnections) };
      this.#pools.set(origin, pool);
    }
    return pool;
  }
}

interface FlightReport {
  readonly status: (status: number) => void;
  readonly done: (whole: boolean) => void;
  readonly failed: (error: unknown, timedOut: boolean) => void;
}

/** One running request and its response. */
class Flight implements Dispatcher.DispatchHandler {
  readonly #sink: ResponseSink;
  readonly #idle: IdleTimer;
  readonly #report: FlightReport;
  #controller: Dispatcher.DispatchController | undefined;
  #timedOut = false;
  #settled = false;
  #unwatch: () => void = () => undefined;
  #bodyError: unknown;

  constructor(sink: ResponseSink, idleMs: number, report: FlightReport) {
    this.#sink = sink;
    this.#report = report;
    this.#idle = new IdleTimer(idleMs, () => {
      this.#timedOut = true;
      this.#abort(new Error("idle"));
    });
  }

  watch(signal: AbortSignal): void {
    const left = (): void => this.#abort(new Error("the client left"));
    signal.addEventListener("abort", left, { once: true });
    this.#unwatch = () => signal.removeEventListener("abort", left);
    if (signal.aborted) left();
  }

  /** The body, its chunks counted as signs of life; its own error is what the request fails with. */
  async *sent(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    try {
      this.#idle.pause();
      for await (const chunk of body) {
        this.#idle.resume();
        yield chunk;
        this.#idle.pause();
      }
    } catch (error) {
      this.#bodyError = error;
      throw error;
    } finally {
      this.#idle.resume();
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error("given up"));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#idle.touch();
    // Interim responses (RFC 9110 section 15.2) are not relayed.
    if (status < 200 || this.#settled) return;
    this.#report.status(status);
    if (this.#sink.head(status, headers)) return;
    this.#settle(() => this.#report.done(false));
    controller.abort(new Error("not wanted"));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#idle.touch();
    if (this.#settled) return;
    const flow = { resume: () => this.#resume(controller) };
    if (this.#sink.data(chunk, flow)) return;
    // The client's own idle limit runs while it does not read.
    this.#idle.pause();
    controller.pause();
  }

  onResponseEnd(): void {
    if (this.#settled) return;
    this.#settle(() => {
      this.#sink.end();
      this.#report.done(true);
    });
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#settle(() => this.#report.failed(this.#bodyError ?? error, this.#timedOut));
  }

  #resume(controller: Dispatcher.DispatchController): void {
    this.#idle.resume();
    controller.resume();
  }

  #abort(reason: Error): void {
    this.#controller?.abort(reason);
    this.#settle(() => this.#report.failed(this.#bodyError ?? reason, this.#timedOut));
  }

  #settle(report: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#idle.stop();
    this.#unwatch();
    report();
  }
}

function explained(
  error: unknown,
  timedOut: boolean,
  url: URL,
  clientGone: boolean,
  idleMs: number,
): ApiError {
  if (error instanceof ApiError) return error;
  if (clientGone) return new ApiError("client_gone", 499, "the client left");
  if (timedOut) {
    return new ApiError("upstream_timeout", 504, `${url.host} did not answer for ${idleMs / 1000} seconds`);
  }
  const code = systemCode(error) ?? "no connection";
  return new ApiError("upstream_unreachable", 502, `${url.host} cannot be reached (${code})`, {
    cause: error,
  });
}

function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

function isStale(error: unknown): boolean {
  return ["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"].includes(systemCode(error) ?? "");
}
