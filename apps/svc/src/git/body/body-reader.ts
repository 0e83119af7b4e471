import type { IncomingMessage } from "node:http";
import { HeldBytes, SMALL_BODY_BYTES, type HeldPlace } from "../../http/server/held-bytes.ts";
import { EqualStreams, type EqualStream } from "../../http/request/equal-streams.ts";
import { BodyTurns } from "./body-turns.ts";
import { GitError } from "../../upstream/errors.ts";
import { InflatedBody } from "./inflated-body.ts";
import { ReceivedBody } from "./received-body.ts";

/** Milliseconds without a byte of the body after which it is given up. */
export const BODY_IDLE_MS = 60_000;
/** Milliseconds for the whole body: one that drips for ever ends too. 64 MiB in that time is 0.9 Mbit/s. */
const BODY_TOTAL_MS = 600_000;
/** Maximum bytes of large command bodies in memory, over all requests. Further large ones get 503. */
export const MAX_HELD_BYTES = 512 * 1024 * 1024;

/** Bytes of a body, inflated, that are read before the caller is authorized: nearly every body, and the head of any. */
export const HEAD_BYTES = SMALL_BODY_BYTES;

export interface BodyReaderLimits {
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
export interface WholeBody {
  readonly bytes: Buffer;
  release(): void;
}

/** Reads bodies of protocol v2 commands, within limits for each and for all together. */
export class BodyReaders {
  readonly #limits: BodyReaderLimits;
  readonly #held: HeldBytes;
  readonly #turns = new BodyTurns();
  readonly #equal = new EqualStreams(() => undefined);

  constructor(limits: BodyReaderLimits) {
    this.#limits = limits;
    this.#held = new HeldBytes(limits.heldBytes ?? MAX_HELD_BYTES);
  }

  /**
   * Begins to read a body. The caller must release it.
   *
   * @param client address that the body is held for; empty: not known
   * @throws GitError `body_too_large`, `encoding_unsupported`
   */
  open(request: IncomingMessage, client: string): BodyReader {
    const { maxBytes, idleMs = BODY_IDLE_MS, totalMs = BODY_TOTAL_MS } = this.#limits;
    const announced = Number(request.headers["content-length"] ?? 0);
    if (announced > maxBytes) throw tooLarge(maxBytes);
    const compressed = isCompressed(request.headers["content-encoding"]);
    const received = new ReceivedBody(request, { idleMs, totalMs });
    const body = { announced, compressed, maxBytes };
    const equal = (): EqualStream<undefined> => this.#equal.begin(request.url ?? "");
    return new BodyReader(received, body, { place: this.#held.place(client), turns: this.#turns, equal });
  }

  /**
   * Reads and inflates a whole body.
   *
   * @throws GitError as {@link open} and {@link BodyReader.rest}
   */
  async read(request: IncomingMessage, client: string): Promise<WholeBody> {
    const reader = this.open(request, client);
    try {
      const bytes = await reader.rest();
      return { bytes, release: () => reader.release() };
    } catch (error) {
      reader.release();
      throw error;
    }
  }
}

/** Beginning of a body; `complete`: it is all of it. */
export interface BodyHead {
  readonly bytes: Buffer;
  readonly complete: boolean;
}

/**
 * Reads one body: first its head, and the rest only if the caller asks for it. What is not asked for is neither read from
 * the socket nor inflated. The request is never destroyed: its connection is needed for the response.
 */
export class BodyReader {
  readonly #maxBytes: number;
  /** Bytes of the body as it travels; 0: not known. */
  readonly #announced: number;
  readonly #place: HeldPlace;
  readonly #turns: BodyTurns;
  #giveBack: () => void = () => undefined;
  #released = false;
  readonly #received: ReceivedBody;
  readonly #inflated: InflatedBody | undefined;
  readonly #bytes = new Blocks();
  readonly #equal: () => EqualStream<undefined>;
  /** A large body, of which only the bytes are kept that are not those of another one. Undefined: it is not large. */
  #stream: EqualStream<undefined> | undefined;
  #complete = false;

  /** By {@link BodyReaders.open}. */
  constructor(
    received: ReceivedBody,
    body: { readonly announced: number; readonly compressed: boolean; readonly maxBytes: number },
    shared: {
      readonly place: HeldPlace;
      readonly turns: BodyTurns;
      readonly equal: () => EqualStream<undefined>;
    },
  ) {
    const { announced, compressed, maxBytes } = body;
    const { place, turns, equal } = shared;
    this.#turns = turns;
    this.#equal = equal;
    this.#announced = announced;
    this.#received = received;
    this.#inflated = compressed ? new InflatedBody(async () => received.next()) : undefined;
    this.#maxBytes = maxBytes;
    this.#place = place;
  }

  /**
   * Reads the first {@link HEAD_BYTES}, inflated; less of a body that is known to be longer, when that is enough. Their
   * place is always there.
   *
   * @param isEnough whether the caller needs no more than these bytes
   * @throws GitError `body_too_large`, `body_malformed`, `body_too_slow`, `client_gone`
   */
  async head(isEnough: (bytes: Buffer) => boolean): Promise<BodyHead> {
    let askAt = 1;
    // Chunks that inflate to nothing count too.
    while (!this.#complete && this.#bytes.size <= HEAD_BYTES && this.#received.size <= HEAD_BYTES) {
      await this.#step();
      if (this.#announced <= HEAD_BYTES || this.#bytes.size < askAt) continue;
      const bytes = this.#bytes.joined();
      if (isEnough(bytes)) return { bytes, complete: false };
      // Doubled each time: bytes that come one by one are looked at a few times, not each time from the start.
      askAt = bytes.length * 2;
    }
    const complete = this.#complete && this.#bytes.size <= HEAD_BYTES;
    return { bytes: this.#bytes.joined().subarray(0, HEAD_BYTES), complete };
  }

  /**
   * Reads what is left, and gives the whole body. The reader does not keep it. When the caller has decoded it, it calls
   * {@link decoded}.
   *
   * @throws GitError `body_too_large`, `body_malformed`, `body_too_slow`, `busy`, `client_gone`
   */
  async rest(): Promise<Buffer> {
    const giveBack = await this.#turns.take();
    if (this.#released) {
      giveBack();
      throw new GitError("client_gone", 499, "the client left");
    }
    this.#giveBack = giveBack;
    const stream = (this.#stream ??= this.#equal());
    add(stream, this.#bytes.taken());
    for (let held = 0; ;) {
      if (!this.#place.grow(stream.size - held)) throw busy();
      held = stream.size;
      if (this.#complete) return stream.bytes;
      await this.#step();
    }
  }

  /** The body is decoded: another large one may be read. */
  decoded(): void {
    this.#giveBack();
    this.#stream?.leave();
  }

  /** Stops reading, and gives the bytes back to the common limit. Calling it again does nothing. */
  release(): void {
    this.#released = true;
    this.#giveBack();
    this.#stream?.leave();
    this.#received.leave();
    this.#inflated?.close();
    this.#place.leave();
  }

  async #step(): Promise<void> {
    const chunk = await (this.#inflated?.next() ?? this.#received.next());
    if (chunk === undefined) this.#complete = true;
    else if (this.#stream === undefined) this.#bytes.push(chunk);
    else add(this.#stream, chunk);
    const size = Math.max(this.#stream?.size ?? this.#bytes.size, this.#received.size);
    if (size > this.#maxBytes) throw tooLarge(this.#maxBytes);
  }
}

function add(stream: EqualStream<undefined>, chunk: Buffer): void {
  stream.append(stream.match(chunk), undefined);
}

/** Bytes that small chunks are gathered in. */
const BLOCK_BYTES = 64 * 1024;

/** Bytes in the order of their arrival. A million small chunks take no more memory than their bytes. */
class Blocks {
  readonly #parts: Buffer[] = [];
  #block = Buffer.alloc(0);
  #used = 0;
  size = 0;

  push(chunk: Buffer): void {
    if (chunk.length === 0) return;
    // The first is mostly the only one: it is not copied.
    if (this.size === 0 || chunk.length > BLOCK_BYTES / 4) {
      this.#seal();
      this.#parts.push(chunk);
    } else {
      if (this.#used + chunk.length > this.#block.length) {
        this.#seal();
        this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
      }
      chunk.copy(this.#block, this.#used);
      this.#used += chunk.length;
    }
    this.size += chunk.length;
  }

  joined(): Buffer {
    this.#seal();
    const [first] = this.#parts;
    if (this.#parts.length === 1 && first !== undefined) return first;
    const all = Buffer.concat(this.#parts.splice(0));
    this.#parts.push(all);
    return all;
  }

  /** As {@link joined}; nothing is left here. */
  taken(): Buffer {
    const all = this.joined();
    this.#parts.length = 0;
    this.#block = Buffer.alloc(0);
    return all;
  }

  #seal(): void {
    if (this.#used > 0) this.#parts.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
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
  return new GitError("busy", 503, "too many concurrent large requests; try again", {
    headers: { "Retry-After": "5" },
  });
}
