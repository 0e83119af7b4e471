import type { Readable } from "node:stream";
import { TimeLimit, backoffMs, systemClock, systemCode, untilAborted, type Clock } from "@devplat/base";
import { HttpClientError } from "@devplat/http-client";
import { CHUNKED_PAYLOAD, ChunkedBody } from "./uploads/chunked-body.ts";
import type { CredentialSource } from "./credentials.ts";
import { ObjectStoreError } from "./errors.ts";
import type { Traffic } from "./object-store.ts";
import { EMPTY_SHA256, RequestSigner, type RequestToSign } from "./request-signer.ts";
import { readFault, readHttpDate, single, type ResponseHeaders } from "./responses.ts";
import type { S3Address } from "./s3-address.ts";
import type { S3Connections } from "./s3-connections.ts";
import { faultOfResponse, faultOfTransport, type CallSubject } from "./s3-faults.ts";
import { StoreClock } from "./store-clock.ts";
import { MAX_XML_BYTES, damagedXml } from "./xml-document.ts";

export interface S3Call extends CallSubject {
  readonly method: RequestToSign["method"];
  /** Undefined: a request to the bucket. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | ChunkedBody;
  /** SHA-256 of the body, in hex. */
  readonly payloadSha256?: string;
  readonly traffic: Traffic;
  /** Milliseconds to the first byte of the response, over all tries. */
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface S3Response {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Readable;
}

/** Tries of one call, including the first. */
const MAX_TRIES = 4;
const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;
/** Milliseconds without a byte in the middle of a body. */
const IDLE_BODY_MS = 10_000;
/** Bytes of the largest error document. They are small; the rest is another program's page. */
const MAX_ERROR_BYTES = 64 << 10;
const NOT_MODIFIED = 304;
const MULTIPLE_CHOICES = 300;
/** Errors of the system and of undici after which the store has not seen the request. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends signed requests, with time limits and repetitions. */
export class S3Requests {
  readonly address: S3Address;
  readonly storeClock: StoreClock;
  readonly #connections: S3Connections;
  readonly #credentials: CredentialSource;
  readonly #signer: RequestSigner;
  readonly #clock: Clock;

  constructor(
    address: S3Address,
    connections: S3Connections,
    credentials: CredentialSource,
    clock: Clock = systemClock,
  ) {
    this.address = address;
    this.#connections = connections;
    this.#credentials = credentials;
    this.#signer = new RequestSigner(address.region);
    this.#clock = clock;
    this.storeClock = new StoreClock(clock);
  }

  /**
   * Sends a call until it succeeds, fails for good, or its time is over. Resolves with the headers of a success or of
   * 304. The caller must read or destroy the body.
   *
   * @throws ObjectStoreError
   */
  async send(call: S3Call): Promise<S3Response> {
    const deadline = this.#clock.monotonic() + call.limitMs;
    let renew = false;
    let before: ObjectStoreError | undefined;
    for (let failures = 1; ; failures++) {
      call.signal?.throwIfAborted();
      const storeTime = this.storeClock.now();
      try {
        return await this.#try(call, deadline - this.#clock.monotonic(), renew);
      } catch (error) {
        call.signal?.throwIfAborted();
        if (!(error instanceof ObjectStoreError)) throw error;
        const isOver = failures >= MAX_TRIES || this.#clock.monotonic() >= deadline;
        // A last try without enough time says less than the response of the store to an earlier one.
        if (isOver) throw error.code === "timeout" && !error.outcomeUnknown ? (before ?? error) : error;
        before = error;
        const isOfSignature = error.code === "credentials_refused" && failures === 1;
        renew = isOfSignature && error.storeCode !== "RequestTimeTooSkewed";
        if (!isOfSignature && !mayRepeat(error)) throw error;
        // Without a change of credentials or clock a second signature would be the same. A new time is worth a try.
        if (error.storeCode === "RequestTimeTooSkewed" && this.storeClock.now() === storeTime) throw error;
        const wait = isOfSignature
          ? 0
          : backoffMs(failures, { firstMs: FIRST_BACKOFF_MS, maxMs: MAX_BACKOFF_MS, jitter: 0.5 });
        if (this.#clock.monotonic() + wait >= deadline) throw error;
        await this.#clock.sleep(wait, call.signal);
      }
    }
  }

  /** As {@link send}, with the whole body as text. @throws ObjectStoreError `damaged`: it is too large */
  async sendForText(call: S3Call): Promise<{ readonly headers: ResponseHeaders; readonly text: string }> {
    const { headers, body } = await this.send(call);
    try {
      return { headers, text: await readText(body, MAX_XML_BYTES) };
    } catch (error) {
      if (error instanceof ObjectStoreError) throw error;
      call.signal?.throwIfAborted();
      throw faultOfTransport(this.address, call, error, true);
    }
  }

  /** One request. */
  async #try(call: S3Call, limitMs: number, renew: boolean): Promise<S3Response> {
    const url = this.address.url(call.key, call.query);
    using limit = new TimeLimit(this.#clock, Math.max(0, limitMs));
    // The caller's signal also ends the body, the time limit only the wait for it.
    const aborted = new AbortController();
    const end = (): void => aborted.abort(limit.signal.reason);
    limit.signal.addEventListener("abort", end);
    const state = { sent: false };
    try {
      const credentials = await untilAborted(this.#credentials.current(renew), limit.signal);
      const { body } = call;
      const [chunked, plain] = body instanceof ChunkedBody ? [body] : [undefined, body];
      const headers = await this.#signer.sign(
        {
          method: call.method,
          url,
          headers: { ...call.headers, ...(chunked !== undefined && chunkedHeaders(chunked)) },
          payloadSha256: chunked === undefined ? (call.payloadSha256 ?? EMPTY_SHA256) : CHUNKED_PAYLOAD,
        },
        credentials,
        this.storeClock.now(),
      );
      const pool = await this.#connections.pool(call.traffic);
      state.sent = true;
      const response = await pool.request({
        origin: this.address.origin,
        path: url.slice(this.address.origin.length),
        method: call.method,
        headers,
        body: chunked?.sign(this.#signer.chunkSeed(headers, credentials)) ?? plain ?? null,
        signal: call.signal === undefined ? aborted.signal : AbortSignal.any([aborted.signal, call.signal]),
        bodyTimeout: IDLE_BODY_MS,
      });
      this.storeClock.learn(readHttpDate(single(response.headers, "date")));
      const { statusCode: status } = response;
      if (status < MULTIPLE_CHOICES || status === NOT_MODIFIED)
        return { status, headers: response.headers, body: response.body };
      const text = await readText(response.body, MAX_ERROR_BYTES).catch((error: unknown) => {
        if (error instanceof ObjectStoreError) return "";
        // Without its document the status alone may say something else, such as 403 for bytes that were damaged.
        throw error;
      });
      throw faultOfResponse(this.address, call, status, response.headers, readFault(text));
    } catch (error) {
      if (error instanceof ObjectStoreError || error === call.signal?.reason) throw error;
      const isProxy = error instanceof HttpClientError;
      throw faultOfTransport(
        this.address,
        call,
        error,
        state.sent && !isProxy && !NEVER_SENT.has(systemCode(error) ?? ""),
      );
    } finally {
      limit.signal.removeEventListener("abort", end);
    }
  }
}

/** Repeats a passing fault of a call that can be repeated, and of any other call if the store did nothing. */
function mayRepeat(error: ObjectStoreError): boolean {
  return error.remedy === "retry" && !error.outcomeUnknown;
}

async function readText(body: Readable, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) throw damagedXml(`it is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function chunkedHeaders({ length }: ChunkedBody): Readonly<Record<string, string>> {
  return { "content-encoding": "aws-chunked", "x-amz-decoded-content-length": String(length) };
}
