import { encodeErrorLine } from "@devplat/git-protocol";
import { BRAND } from "../brand.ts";
import type { CacheState, Exchange } from "../http/exchange.ts";
import { SANDBOX_HEADERS } from "../http/text-answer.ts";
import { ClientSink } from "./client-sink.ts";
import { stateHeader } from "./headers.ts";
import { UPLOAD_PACK_RESULT } from "./ref-questions.ts";
import { headOf, relay, type RelayOptions } from "./relay.ts";
import type { UpstreamAnswer } from "./upstream.ts";

/**
 * The answer to a body of commands: one head, then the answers to the commands one after the other. Until it has
 * begun, a failure has a status of its own; after that, only a packet with the error.
 */
export class CommandAnswer {
  readonly exchange: Exchange;
  readonly sink: ClientSink;
  /** Whether the body has a single command, so that a known length is the answer's length. */
  readonly #single: boolean;
  #begun = false;

  constructor(exchange: Exchange, single: boolean) {
    this.exchange = exchange;
    this.#single = single;
    this.sink = new ClientSink(exchange.response);
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Begins with the head of the code host's answer. */
  beginRelayed(answer: UpstreamAnswer, options: RelayOptions): void {
    if (this.#begun) return;
    const headers = headOf(this.exchange, answer, options);
    if (!this.#single) delete headers["content-length"];
    this.#begun = true;
    this.exchange.response.writeHead(200, headers);
  }

  /** Begins with a head of ours. @param length of the command's answer in bytes, where it is known */
  beginOwn(state: CacheState, length?: number): void {
    if (this.#begun) return;
    this.#begun = true;
    this.exchange.response.writeHead(200, {
      ...SANDBOX_HEADERS,
      "Content-Type": UPLOAD_PACK_RESULT,
      "Cache-Control": "no-cache",
      [BRAND.cacheHeader]: state,
      "X-Request-Id": this.exchange.id,
      "Server-Timing": this.exchange.serverTiming,
      ...(this.#single && length !== undefined ? { "Content-Length": length } : {}),
    });
  }

  /** Ends with an `ERR` packet: a regular end, which git prints. */
  async endWithError(state: CacheState, message: string): Promise<void> {
    this.beginOwn(state);
    await this.sink.write(encodeErrorLine(message));
    this.sink.end();
  }

  /** Ends with an answer of the code host that is no yes: as it is, or in a packet if the head is out. */
  async endRefused(answer: UpstreamAnswer, options: RelayOptions): Promise<void> {
    if (!this.#begun) {
      const headers = { ...options.headers, ...stateHeader(this.exchange) };
      await relay(this.exchange, answer, { ...options, headers });
      return;
    }
    answer.cancel();
    await this.endWithError("error", `the code host answered ${answer.status}`);
  }

  end(): void {
    this.sink.end();
  }
}
