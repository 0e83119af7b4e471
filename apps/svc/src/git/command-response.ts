import { encodeErrorLine, encodeSideBandError } from "@devplat/git-protocol";
import type { RequestContext } from "../http/request/request-context.ts";
import { SANDBOX_HEADERS } from "../http/request/text-answer.ts";
import { ClientSink } from "./client-sink.ts";
import type { FetchResult } from "../telemetry/metrics.ts";
import type { HeaderRecord } from "../upstream/headers.ts";
import { UPLOAD_PACK_RESULT } from "../upstream/headers.ts";
import { headOf, relay, type RelayOptions } from "./relay.ts";
import type { UpstreamResponse } from "../upstream/upstream.ts";

/** Bytes of `ls-refs` responses that wait for the outcome of the fetch in the same body; 10,000 refs take 600 KB. */
const MAX_WAITING_BYTES = 1024 * 1024;

/**
 * The response to a body of commands: one head, then the responses to the commands in order. A failure before the head
 * has a status of its own. A later failure is a packet with the error.
 */
export class CommandResponse {
  readonly context: RequestContext;
  readonly sink: ClientSink;
  /** Whether the body has a single command, so that a known length is the response's length. */
  readonly #single: boolean;
  #begun = false;
  #lengthKnown = false;
  #inPack = false;
  /**
   * The head and the first bytes of a response to a body with a fetch. The head names the outcome of the fetch, which is
   * known only after the `ls-refs` before it. Undefined: nothing waits.
   */
  #waiting: { head?: HeaderRecord; readonly chunks: Buffer[]; size: number } | undefined;

  /** @param fetches whether the body has a fetch anywhere in it */
  constructor(context: RequestContext, single: boolean, fetches: boolean) {
    this.context = context;
    this.#waiting = fetches ? { chunks: [], size: 0 } : undefined;
    this.#single = single;
    const sink = new ClientSink(context.response);
    this.sink = sink;
    context.countAlso(() => sink.fileBytes, "sendfile");
  }

  get begun(): boolean {
    return this.#begun;
  }

  /** Whether the head says the length: then the body is the response's own bytes, without chunks around them. */
  get hasLength(): boolean {
    return this.#lengthKnown;
  }

  /** Begins with the head of the code host's response. */
  beginRelayed(response: UpstreamResponse, options: RelayOptions): void {
    if (this.#begun) return;
    const headers = headOf(this.context, response, options);
    if (!this.#single) delete headers["content-length"];
    this.#begun = true;
    if (this.#waiting === undefined) this.context.response.writeHead(200, headers);
    else this.#waiting.head = headers;
  }

  /** Writes a part of a relayed response, or keeps it until the outcome is known. */
  async write(bytes: Buffer): Promise<void> {
    const waiting = this.#waiting;
    if (waiting === undefined) {
      await this.sink.write(bytes);
      return;
    }
    waiting.chunks.push(bytes);
    waiting.size += bytes.length;
    if (waiting.size <= MAX_WAITING_BYTES) return;
    this.context.withholdCacheHeader();
    this.#release();
  }

  /** Begins with a head of this service. @param length of the command's response in bytes, where it is known */
  beginOwn(result: FetchResult, length?: number): void {
    this.context.concludeCache(result);
    if (this.#begun) {
      this.#release();
      return;
    }
    this.#begun = true;
    this.#waiting = undefined;
    this.#lengthKnown = this.#single && length !== undefined;
    this.context.response.writeHead(200, {
      ...this.#ownHead(),
      ...(this.#single && length !== undefined ? { "Content-Length": length } : {}),
    });
  }

  /** Whether an error now belongs on side-band 3, because the client waits in the section of the pack. */
  get inPack(): boolean {
    return this.#inPack;
  }

  /**
   * Begins with the first bytes of the response, before it is known where the rest comes from. They are left out when the
   * response itself is written.
   *
   * @param beginning ends with the line that begins the pack
   */
  async beginPack(beginning: Buffer): Promise<void> {
    const { context } = this;
    // The header would be sent before the outcome is known.
    context.withholdCacheHeader();
    if (this.#begun) this.#release();
    else context.response.writeHead(200, this.#ownHead());
    this.#begun = true;
    this.#waiting = undefined;
    this.#inPack = true;
    await this.sink.write(beginning);
  }

  /** Whether the proxy in front may send the whole response. */
  get canHandOver(): boolean {
    return this.#single && !this.#begun;
  }

  /**
   * Begins with a head that tells the proxy in front which file it must send in the place of this response.
   *
   * @param location internal location of the proxy
   * @param bytes that the proxy sends
   */
  handOver(location: string, bytes: number): void {
    const { context } = this;
    context.concludeCache("hit");
    context.countAlso(() => bytes, "accel");
    this.#begun = true;
    this.#waiting = undefined;
    context.response.writeHead(200, {
      ...this.#ownHead(),
      "X-Accel-Redirect": location,
      "Content-Length": 0,
    });
  }

  /** Ends with an `ERR` packet: a regular end, which git prints. */
  async endWithError(result: FetchResult, message: string): Promise<void> {
    this.beginOwn(result);
    this.sink.skip(Buffer.alloc(0));
    await this.sink.write(this.#inPack ? encodeSideBandError(message) : encodeErrorLine(message));
    this.sink.end();
  }

  /** Ends with a response of the code host that refuses: as it is, or in a packet if the head is out. */
  async endRefused(response: UpstreamResponse, options: RelayOptions): Promise<void> {
    if (!this.#begun) {
      await relay(this.context, response, options);
      return;
    }
    response.cancel();
    await this.endWithError("error", `the code host answered ${response.status}`);
  }

  end(): void {
    this.#release();
    this.sink.end();
  }

  #ownHead(): Record<string, string> {
    return {
      ...SANDBOX_HEADERS,
      "Content-Type": UPLOAD_PACK_RESULT,
      "Cache-Control": "no-cache",
      "X-Request-Id": this.context.id,
      "Server-Timing": this.context.serverTiming,
    };
  }

  /** Sends what waited. */
  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting?.head === undefined) return;
    this.context.response.writeHead(200, waiting.head);
    for (const bytes of waiting.chunks) this.context.response.write(bytes);
  }
}
