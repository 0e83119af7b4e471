import type { TokenLimits } from "../scopes/required-permissions.ts";
import type { IncomingHttpHeaders } from "node:http";
import type { RequestContext } from "../http/request/request-context.ts";
import { MAX_REFUSAL_BYTES, type HostUnauthorized } from "../code-host/refusal-words.ts";
import { CLIENT_IDLE_MS } from "../git/client-sink.ts";
import { IdleTimer } from "../http/request/idle-timer.ts";
import { answeredHeaders } from "./api-headers.ts";
import type { ResponseFlow, ResponseSink } from "./api-upstream.ts";
import type { ApiView } from "./api-view.ts";

/** Relays the code host's response to the client as it arrives, no faster than the client reads. */
export class ApiRelay implements ResponseSink {
  readonly #context: RequestContext;
  readonly #view: ApiView;
  readonly #token: TokenLimits | undefined;
  readonly #holdsUnauthorized: boolean;
  #hasBody = true;
  #unauthorized:
    | { readonly headers: IncomingHttpHeaders; readonly chunks: Buffer[]; size: number }
    | undefined;
  #idle: IdleTimer | undefined;
  /** The code host's status; undefined: it has not answered. */
  status: number | undefined;

  /**
   * @param token limits of the token of this service in the request; undefined: the credential is the caller's own
   * @param holdsUnauthorized whether a 401 is not relayed, and only its text is kept
   */
  constructor(
    context: RequestContext,
    view: ApiView,
    token: TokenLimits | undefined,
    holdsUnauthorized: boolean,
  ) {
    this.#token = token;
    this.#context = context;
    this.#view = view;
    this.#holdsUnauthorized = holdsUnauthorized;
  }

  /** The 401 that was not relayed. */
  get unauthorized(): Omit<HostUnauthorized, "renewed"> | undefined {
    const held = this.#unauthorized;
    return held && { headers: held.headers, body: Buffer.concat(held.chunks) };
  }

  head(status: number, upstream: IncomingHttpHeaders): boolean {
    const { request, response } = this.#context;
    this.status = status;
    if (response.destroyed) return false;
    if (status === 401 && this.#holdsUnauthorized) {
      this.#unauthorized = { headers: upstream, chunks: [], size: 0 };
      return true;
    }
    const headers = answeredHeaders(upstream, this.#view, this.#token);
    this.#context.timing("total", performance.now() - this.#context.startedAt);
    headers["server-timing"] = this.#context.serverTiming;
    this.#hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
    this.#gather();
    response.writeHead(status, headers);
    return true;
  }

  data(chunk: Buffer, flow: ResponseFlow): boolean {
    const { response } = this.#context;
    const held = this.#unauthorized;
    if (held !== undefined) {
      if (held.size < MAX_REFUSAL_BYTES) held.chunks.push(chunk);
      held.size += chunk.length;
      return true;
    }
    if (!this.#hasBody || response.write(chunk)) return true;
    this.#watch();
    response.once("drain", () => {
      this.#idle?.pause();
      flow.resume();
    });
    return false;
  }

  /** The head and the first bytes mostly arrive together, so they are sent with one system call. */
  #gather(): void {
    const { request, response } = this.#context;
    const { socket } = response;
    if (socket === null || request.httpVersionMajor !== 1) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  /** Starts the idle limit of the client. */
  #watch(): void {
    if (this.#idle !== undefined) return this.#idle.resume();
    const { response } = this.#context;
    const idle = new IdleTimer(CLIENT_IDLE_MS, () => response.destroy());
    this.#idle = idle;
    response.once("close", () => idle.stop());
  }

  end(): void {
    if (this.#unauthorized !== undefined) return;
    this.#idle?.stop();
    this.#context.response.end();
  }
}
