import type { IncomingMessage } from "node:http";
import { createGunzip } from "node:zlib";
import { HeldBytes, type HeldPlace } from "../http/held-bytes.ts";
import { GitError } from "./errors.ts";
import { IdleTimer } from "../http/idle-timer.ts";

/** Milliseconds without a byte of the body after which it is given up. */
export const BODY_IDLE_MS = 60_000;
/** Milliseconds for the whole body: one that drips for ever ends too. 64 MiB in that time is 0.9 Mbit/s. */
const BODY_TOTAL_MS = 600_000;
/** Bytes of large command bodies that are held at once, over all requests; further large ones get 503. */
export const MAX_HELD_BYTES = 512 * 1024 * 1024;

export interface CommandBodyLimits {
  /** Bytes after inflating: `limits.git_command_bytes`. */
  readonly maxBytes: number;
  /** Default {@link BODY_IDLE_MS}. */
  readonly idleMs?: number;
  /** Default {@link BODY_TOTAL_MS}. */
  readonly totalMs?: number;
  /** Default {@link MAX_HELD_BYTES}. */
  readonly heldBytes?: number;
}

/** A body in memory. `release` gives its bytes back to the common limit; it must be called. */
export interface HeldBody {
  readonly bytes: Buffer;
  release(): void;
}

/** Reads bodies of protocol v2 commands whole, within limits for each and for all together. */
export class CommandBodies {
  readonly #limits: CommandBodyLimits;
  readonly #held: HeldBytes;

  constructor(limits: CommandBodyLimits) {
    this.#limits = limits;
    this.#held = new HeldBytes(limits.heldBytes ?? MAX_HELD_BYTES);
  }

  /**
   * Reads and inflates a body. Inflating stops at the limit: a small body that inflates to a huge one costs no more.
   *
   * @param client address that the body is held for; empty: not known
   * @throws GitError `body_too_large`, `body_malformed`, `body_too_slow`, `encoding_unsupported`, `busy`, `client_gone`
   */
  async read(request: IncomingMessage, client: string): Promise<HeldBody> {
    const { maxBytes, idleMs = BODY_IDLE_MS, totalMs = BODY_TOTAL_MS } = this.#limits;
    const announced = Number(request.headers["content-length"] ?? 0);
    if (announced > maxBytes) throw tooLarge(maxBytes);
    const compressed = isCompressed(request.headers["content-encoding"]);
    const place = this.#held.place(client);
    const bytes = await this.#collect(request, compressed, { maxBytes, idleMs, totalMs }, place);
    return { bytes, release: () => place.leave() };
  }

  /** Collects the body. The request itself is never destroyed: its connection is needed for the answer. */
  #collect(
    request: IncomingMessage,
    compressed: boolean,
    { maxBytes, idleMs, totalMs }: Required<Omit<CommandBodyLimits, "heldBytes">>,
    place: HeldPlace,
  ): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    const gunzip = compressed ? createGunzip() : undefined;
    const source = gunzip ?? request;
    const parts: Buffer[] = [];
    let size = 0;
    let settled = false;
    const settle = (): boolean => {
      if (settled) return false;
      settled = true;
      idle.stop();
      clearTimeout(total);
      request.off("data", touch).off("close", onClose).off("error", onClose);
      source.off("data", onData).off("end", onEnd);
      return true;
    };
    const fail = (error: GitError): void => {
      if (!settle()) return;
      place.leave();
      request.unpipe();
      gunzip?.destroy();
      reject(error);
    };
    const slow = (): void => fail(new GitError("body_too_slow", 408, "the request's body took too long"));
    const idle = new IdleTimer(idleMs, slow);
    const total = setTimeout(slow, totalMs);
    total.unref();
    const touch = (): void => idle.touch();
    const onClose = (): void => {
      if (!request.complete) fail(new GitError("client_gone", 499, "the client left"));
    };
    const onData = (chunk: Buffer): void => {
      if (size + chunk.length > maxBytes) fail(tooLarge(maxBytes));
      else if (!place.grow(chunk.length)) fail(busy());
      else {
        parts.push(chunk);
        size += chunk.length;
      }
    };
    const onEnd = (): void => {
      if (!settle()) return;
      resolve(parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts));
    };
    request.on("data", touch).on("close", onClose).on("error", onClose);
    source.on("data", onData).on("end", onEnd);
    gunzip?.on("error", (error) => fail(malformed("the request's body is not gzip, or it is cut", error)));
    if (gunzip !== undefined) request.pipe(gunzip);
    return promise;
  }
}

/** A 400 about the body. */
export function malformed(message: string, cause?: unknown): GitError {
  return new GitError("body_malformed", 400, message, { remedy: "final", cause });
}

function isCompressed(encoding: string | undefined): boolean {
  const name = (encoding ?? "identity").trim().toLowerCase();
  if (name === "identity") return false;
  if (name === "gzip" || name === "x-gzip") return true;
  throw new GitError("encoding_unsupported", 415, "a command's body may be plain or gzip", {
    headers: { "Accept-Encoding": "gzip" },
    remedy: "final",
  });
}

function tooLarge(maxBytes: number): GitError {
  return new GitError("body_too_large", 413, `the request's body is over ${maxBytes} bytes when inflated`, {
    remedy: "final",
  });
}

function busy(): GitError {
  return new GitError("busy", 503, "too many large requests at once; try again", {
    headers: { "Retry-After": "5" },
  });
}
