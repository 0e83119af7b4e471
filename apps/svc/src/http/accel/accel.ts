import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AccelRefusal, AccelRefusals } from "./accel-refusals.ts";
import { isLoopbackPeer } from "./loopback-peer.ts";
import { messageOf, systemCode, type Logger, type Secret } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import { bringIntoMemory, type ComparedFile } from "../send-file/bring-into-memory.ts";
import type { HandedFiles, PlainFile } from "./handed-files.ts";

/** Request header with `server.accel_secret`. The proxy in front sets it, and replaces what a client sent. */
export const ACCEL_HEADER = "x-svc-accel";
/** Location of {@link HandedFiles} that only the proxy itself reaches. */
export const ACCEL_LOCATION = "/_svc_accel/";
/** Bytes of a response from which on handing over is cheaper than sending. */
const MIN_BYTES = 1024 * 1024;
/** Milliseconds between two log lines of the same failure: each request can fail. */
const LOG_INTERVAL_MS = 600_000;
/** Request headers to which a web server answers with a part of the file, or none of it. The service ignores them. */
const CONDITIONS = [
  "range",
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
  "if-range",
];

export interface AccelOptions {
  /** `server.accel_secret` */
  readonly secret: Secret;
  readonly files: HandedFiles;
  readonly refusals: AccelRefusals;
  readonly logger: Logger;
}

/** An open response, as far as it is needed here. */
export interface HandedResponse {
  readonly size: number;
  readonly soundFile?: {
    readonly plain?: PlainFile;
    isStillSound(reread: boolean): Promise<boolean>;
  } & ComparedFile;
}

/** Lets the reverse proxy in front send stored responses (`X-Accel-Redirect`), so that their bytes never pass through here. */
export class Accel {
  readonly #options: AccelOptions;
  readonly #secret: Buffer;
  readonly #lines = new TokenBucket({ capacity: 1, refillMs: LOG_INTERVAL_MS });

  constructor(options: AccelOptions) {
    this.#options = options;
    this.#secret = digest(options.secret.reveal());
  }

  /**
   * Hands a response to the proxy from which the request came. The file was found whole, and all of it is in the kernel's
   * memory, so the bytes that the proxy sends are those that were compared with their checksums.
   *
   * @returns the value of `X-Accel-Redirect`; undefined: this service must send the response. Never rejects
   */
  async handOver(request: IncomingMessage, { size, soundFile }: HandedResponse): Promise<string | undefined> {
    const refusal = this.refusal(request);
    if (refusal !== undefined) this.#options.refusals.note(refusal, request.socket.remoteAddress);
    if (soundFile?.plain === undefined || size < MIN_BYTES || refusal !== undefined) return undefined;
    if (CONDITIONS.some((name) => request.headers[name] !== undefined)) return undefined;
    try {
      // The service reads it again, and compares it.
      if (!(await bringIntoMemory(soundFile, size))) {
        this.#options.logger.debug({ size }, "a stored response is not in memory, and is not handed over");
        return undefined;
      }
      const name = await this.#options.files.handOver(soundFile.plain);
      if (name === undefined || !(await soundFile.isStillSound(false))) {
        this.#options.logger.debug({ size }, "a stored response changed, and is not handed over");
        return undefined;
      }
      return ACCEL_LOCATION + name;
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /** Logs why nothing is handed over: once in ten minutes for each cause. */
  failed(error: unknown): void {
    if (this.#lines.take(systemCode(error) ?? messageOf(error)) > 0) return;
    this.#options.logger.warn(
      { err: error },
      "a stored response cannot be handed to the web server in front; this service sends it",
    );
  }

  /** Why a request does not count as one of the proxy in front; undefined: it does. */
  refusal({ socket, headers }: IncomingMessage): AccelRefusal | undefined {
    const given = headers[ACCEL_HEADER];
    if (typeof given !== "string") return "missing";
    if (!timingSafeEqual(digest(given), this.#secret)) return "secret";
    return isLoopbackPeer(socket) ? undefined : "peer";
  }
}

/** Makes both sides equally long, so that the comparison does not tell the length. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
