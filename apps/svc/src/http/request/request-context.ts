import type { Principal } from "../../identity/principal.ts";
import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { BRAND } from "../../brand.ts";
import type { DecisionStage, Metrics, RequestResult } from "../../telemetry/metrics.ts";
import { answerBytes } from "./answer-bytes.ts";
import type { CacheState, ObservedRequest, RequestSubject } from "../../telemetry/observed-request.ts";
import { splitTarget } from "../routing/target.ts";

/** An id that a proxy in front may give; anything else is replaced by ours. */
const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{8,64}$/;

/** Outcomes of an answer that failed after its head was sent. */
const FAILURES: ReadonlySet<RequestResult> = new Set(["error", "rejected"]);

/** Characters of a `User-Agent` or path that are kept in a line. */
const MAX_SHOWN = 300;

/**
 * Sender of a body: `svc`: this process; `sendfile`: the system, from a stored response; `accel`: the proxy in front, from a
 * stored response.
 */
export type BodySender = "svc" | "sendfile" | "accel";

/** One request and its answer, with what is learnt of them on the way for the log, the metrics and `Server-Timing`. */
export class RequestContext implements ObservedRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly id: string;
  /** Address of the client, behind any trusted proxies; IPv4 in its own form. */
  readonly remoteAddress: string;
  readonly startedAt = performance.now();
  /** Aborts when the client is gone before its answer was complete. */
  readonly gone: AbortSignal;
  principal: Principal | undefined;
  /** Undefined: it was refused before that was known, or is for the service itself. */
  subject: RequestSubject | undefined;
  /** The command of protocol v2 that a POST to upload-pack begins with, once it is known. */
  gitCommand: string | undefined;
  /** Whether the body is the lone flush-pkt by which git tests its credential before a large request. */
  gitProbe = false;
  /** Whether every byte of a fetch's answer was handed over: git leaves on the last one, before HTTP's own end. */
  delivered = false;
  /** The limit of this service that refused the request; undefined: none. */
  refusedBy: "queue" | "limit" | undefined;
  /** `owner/name` of a cache-enabled repository. */
  cacheRepo = "";
  readonly #ownToken: (text: string) => boolean;
  readonly #metrics: Metrics;
  readonly #timings: string[] = [];
  readonly #bytes: () => number;
  #more: () => number;
  #moreBy: BodySender = "svc";
  #expectsContinue: boolean;
  #cacheOutcome: RequestResult | "" = "";
  #cacheCounted = false;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    metrics: Metrics,
    options: {
      readonly remoteAddress: string;
      readonly expectsContinue: boolean;
      readonly ownToken: (text: string) => boolean;
    },
  ) {
    this.request = request;
    this.response = response;
    this.#metrics = metrics;
    this.#ownToken = options.ownToken;
    this.#expectsContinue = options.expectsContinue;
    this.#bytes = answerBytes(request, response);
    this.#more = () => 0;
    this.remoteAddress = options.remoteAddress;
    const given = request.headers["x-request-id"];
    const sane = typeof given === "string" && SANE_REQUEST_ID.test(given) && !options.ownToken(given);
    this.id = sane ? given : randomUUID();
    const controller = new AbortController();
    this.gone = controller.signal;
    response.once("close", () => {
      if (!response.writableFinished) controller.abort();
    });
  }

  /**
   * Outcome for the cache: the one value behind the header, the metric and the log. Empty: the cache is off, or the request
   * was not looked at.
   */
  get cacheOutcome(): RequestResult | "" {
    return this.#cacheOutcome;
  }

  /** The outcome as the access log has it. */
  get cacheState(): CacheState {
    const outcome = this.#cacheOutcome;
    return outcome === "nocache" || outcome === "bypass" ? "" : outcome;
  }

  /** Whether the metric has the outcome already; it does not change any more. */
  get cacheCounted(): boolean {
    return this.#cacheCounted;
  }

  /** Sets the outcome and the header. Once the head was sent with an outcome, only a failure replaces it. */
  concludeCache(outcome: RequestResult): void {
    const { response } = this;
    if (this.#cacheCounted) return;
    if (!response.headersSent) response.setHeader(BRAND.cacheHeader, outcome);
    else if (response.hasHeader(BRAND.cacheHeader) && !FAILURES.has(outcome)) return;
    this.#cacheOutcome = outcome;
  }

  /** Takes the header back: the head must go out before the outcome is known. */
  withholdCacheHeader(): void {
    if (!this.response.headersSent) this.response.removeHeader(BRAND.cacheHeader);
  }

  /** The outcome for the metric. Undefined: it was counted before, or there is none. */
  countCache(): RequestResult | undefined {
    if (this.#cacheCounted || this.#cacheOutcome === "") return undefined;
    this.#cacheCounted = true;
    return this.#cacheOutcome;
  }

  /** Whether the client got all of its answer; known when the answer is closed. */
  get complete(): boolean {
    return this.delivered || this.response.writableFinished;
  }

  /** Bytes written for this answer, see {@link answerBytes}. */
  get bytes(): number {
    return this.#bytes() + this.#more();
  }

  /** Counts bytes that do not go through Node's socket, too. @param bytes of this answer so far. @param sender of them */
  countAlso(bytes: () => number, sender: Exclude<BodySender, "svc">): void {
    this.#more = bytes;
    this.#moreBy = sender;
  }

  /** Who sent the body, or most of it. */
  get sentBy(): BodySender {
    return this.#more() > 0 ? this.#moreBy : "svc";
  }

  /** Calls back when the response has ended, or immediately if it has already. */
  whenOver(callback: () => void): void {
    if (this.response.closed) callback();
    else this.response.once("close", callback);
  }

  /** A text that the client chose, as it may stand in a log: not too long, and none of our tokens. */
  shown(text: string): string {
    return this.#ownToken(text) ? "(withheld)" : text.slice(0, MAX_SHOWN);
  }

  /** Path of the request as a log may show it, without the query. */
  get shownPath(): string {
    return this.shown(splitTarget(this.request.url ?? "").path);
  }

  /** Tells a client that sent `Expect: 100-continue` to send its body. Called once the request is authorised. */
  continue(): void {
    if (!this.#expectsContinue) return;
    this.#expectsContinue = false;
    this.response.writeContinue();
  }

  /** Records how long a stage of the decision took, from `since` (`performance.now()`) until now. */
  stage(stage: DecisionStage, since: number): void {
    const ms = performance.now() - since;
    this.#metrics.decision(stage, ms / 1000);
    this.timing(stage, ms);
  }

  /** Adds an entry to `Server-Timing`. */
  timing(name: string, ms: number): void {
    this.#timings.push(`${name};dur=${ms.toFixed(2)}`);
  }

  get serverTiming(): string {
    return this.#timings.join(", ");
  }
}
