import type { IncomingHttpHeaders } from "node:http";
import type { Exchange } from "../http/exchange.ts";
import { CLIENT_IDLE_MS } from "../git/client-sink.ts";
import { IdleTimer } from "../http/idle-timer.ts";
import { answeredHeaders } from "./api-headers.ts";
import type { AnswerFlow, AnswerSink } from "./api-upstream.ts";
import type { ApiView } from "./api-view.ts";

/** Gives the code host's answer to the client as it arrives; a client that reads slowly slows the code host. */
export class ApiRelay implements AnswerSink {
  readonly #exchange: Exchange;
  readonly #view: ApiView;
  readonly #refuses: (status: number) => boolean;
  #hasBody = true;
  #idle: IdleTimer | undefined;
  /** The code host's status; undefined: it has not answered. */
  status: number | undefined;

  /** @param refuses statuses that the client does not get */
  constructor(exchange: Exchange, view: ApiView, refuses: (status: number) => boolean) {
    this.#exchange = exchange;
    this.#view = view;
    this.#refuses = refuses;
  }

  head(status: number, upstream: IncomingHttpHeaders): boolean {
    const { request, response } = this.#exchange;
    this.status = status;
    if (this.#refuses(status) || response.destroyed) return false;
    const headers = answeredHeaders(upstream, this.#view);
    this.#exchange.timing("total", performance.now() - this.#exchange.startedAt);
    headers["server-timing"] = this.#exchange.serverTiming;
    this.#hasBody = request.method !== "HEAD" && status !== 204 && status !== 304;
    this.#gather();
    response.writeHead(status, headers);
    return true;
  }

  data(chunk: Buffer, flow: AnswerFlow): boolean {
    const { response } = this.#exchange;
    if (!this.#hasBody || response.write(chunk)) return true;
    this.#watch();
    response.once("drain", () => {
      this.#idle?.pause();
      flow.resume();
    });
    return false;
  }

  /** Head and first bytes mostly come together: they leave with one call to the system. */
  #gather(): void {
    const { request, response } = this.#exchange;
    const { socket } = response;
    if (socket === null || request.httpVersionMajor !== 1) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  /** Lets time run that the client takes to read. */
  #watch(): void {
    if (this.#idle !== undefined) return this.#idle.resume();
    const { response } = this.#exchange;
    const idle = new IdleTimer(CLIENT_IDLE_MS, () => response.destroy());
    this.#idle = idle;
    response.once("close", () => idle.stop());
  }

  end(): void {
    this.#idle?.stop();
    this.#exchange.response.end();
  }
}
