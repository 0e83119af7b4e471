import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { backoffMs, type Clock } from "@devplat/base";
import { HttpClientError, type HttpClient, type HttpResponse } from "@devplat/http-client";
import { ExportResultCode, type ExportResult } from "@opentelemetry/core";
import type { ISerializer } from "@opentelemetry/otlp-transformer";
import type { ExportHealth } from "./export-health.ts";
import type { SignalSettings } from "./otlp-settings.ts";

/** The response to a batch is a few bytes. A longer one is not read to its end. */
const MAX_RESPONSE_BYTES = 64 * 1024;
/** Attempts for one batch, all within its time limit. */
const MAX_ATTEMPTS = 4;
const BACKOFF = { firstMs: 1000, maxMs: 5000 };
/** Statuses after which the specification of OTLP allows another attempt. */
const RETRYABLE_STATUSES: readonly number[] = [429, 502, 503, 504];
/** Content-Type of each protocol. */
const MEDIA_TYPES = { "http/protobuf": "application/x-protobuf", "http/json": "application/json" } as const;

const compress = promisify(gzip);

/** The part of a response that says how much of a batch was refused. All signals have one, with a count of their own. */
interface PartialResponse {
  readonly partialSuccess?: Readonly<Record<string, unknown>>;
}

export interface OtlpExporterParts<Batch> {
  readonly client: HttpClient;
  readonly serializer: ISerializer<Batch, PartialResponse>;
  readonly settings: SignalSettings;
  readonly health: ExportHealth;
  readonly clock: Clock;
}

/** Result of one attempt. */
interface Attempt {
  readonly problem: string | undefined;
  /** Time until another attempt, in milliseconds; undefined if there must be none. */
  readonly retryInMs?: number;
}

/**
 * Sends batches of one signal to a collector. A batch has one time limit for all its attempts, and is dropped then. The caller
 * limits how many batches there are.
 */
export class OtlpExporter<Batch> {
  readonly #parts: OtlpExporterParts<Batch>;
  readonly #running = new Set<Promise<void>>();
  readonly #ended = new AbortController();

  constructor(parts: OtlpExporterParts<Batch>) {
    this.#parts = parts;
  }

  export(batch: Batch, done: (result: ExportResult) => void): void {
    const sent = this.#send(batch).then((problem) => {
      if (!this.#ended.signal.aborted) this.#parts.health.note(problem);
      if (problem === undefined) done({ code: ExportResultCode.SUCCESS });
      else done({ code: ExportResultCode.FAILED, error: new Error(problem) });
    });
    this.#running.add(sent);
    void sent.finally(() => this.#running.delete(sent));
  }

  async forceFlush(): Promise<void> {
    await Promise.all(this.#running);
  }

  shutdown(): Promise<void> {
    return this.forceFlush();
  }

  /** Ends the requests that run, and drops their batches. */
  end(): void {
    this.#ended.abort();
  }

  /** @returns why the batch was not accepted; undefined if it was. Never rejects */
  async #send(batch: Batch): Promise<string | undefined> {
    const { settings, clock } = this.#parts;
    const end = clock.monotonic() + settings.timeoutMs;
    const body = await this.#bodyOf(batch).catch(() => undefined);
    if (body === undefined) return "the batch cannot be encoded";
    for (let attempt = 1; ; attempt++) {
      const { problem, retryInMs } = await this.#attempt(body, attempt, end - clock.monotonic());
      if (problem === undefined || retryInMs === undefined || attempt === MAX_ATTEMPTS) return problem;
      if (this.#ended.signal.aborted || retryInMs >= end - clock.monotonic()) return problem;
      await clock.sleep(retryInMs, this.#ended.signal).catch(() => undefined);
    }
  }

  async #bodyOf(batch: Batch): Promise<Uint8Array | undefined> {
    const { serializer, settings } = this.#parts;
    const plain = serializer.serializeRequest(batch);
    return plain !== undefined && settings.isCompressed ? await compress(plain) : plain;
  }

  async #attempt(body: Uint8Array, attempt: number, leftMs: number): Promise<Attempt> {
    const { client, settings } = this.#parts;
    try {
      const response = await client.request(settings.url, {
        method: "POST",
        headers: {
          ...settings.headers,
          "content-type": MEDIA_TYPES[settings.protocol],
          ...(settings.isCompressed && { "content-encoding": "gzip" }),
        },
        body,
        timeoutMs: Math.max(1, Math.ceil(leftMs)),
        maxBytes: MAX_RESPONSE_BYTES,
        signal: this.#ended.signal,
      });
      return this.#outcomeOf(response, attempt);
    } catch (error) {
      if (!(error instanceof HttpClientError)) return { problem: "the request failed" };
      const problem = error.message;
      return error.code === "unreachable" ? { problem, retryInMs: backoffMs(attempt, BACKOFF) } : { problem };
    }
  }

  #outcomeOf({ status, headers, body }: HttpResponse, attempt: number): Attempt {
    if (status >= 200 && status < 300) {
      return {
        problem: this.#isPartlyRefused(body) ? "the collector refused a part of the data" : undefined,
      };
    }
    const problem = `the collector answered ${status}`;
    if (!RETRYABLE_STATUSES.includes(status)) return { problem };
    const seconds = Number(headers["retry-after"] ?? Number.NaN);
    return { problem, retryInMs: seconds > 0 ? seconds * 1000 : backoffMs(attempt, BACKOFF) };
  }

  #isPartlyRefused(body: Buffer): boolean {
    if (body.length === 0) return false;
    try {
      const counts = Object.entries(this.#parts.serializer.deserializeResponse(body).partialSuccess ?? {});
      return counts.some(([name, count]) => name.startsWith("rejected") && Number(count) > 0);
    } catch {
      // The status says that the collector has the batch.
      return false;
    }
  }
}
