import { createInflate, deflateSync, inflateSync } from "node:zlib";
import { GitStoreError, type GitStoreErrorDetails } from "../errors.ts";
import { ZlibHandle } from "./zlib-handle.ts";

/** Results of {@link Inflater.inflate} for faulty data, in place of a count. */
export const CORRUPT = -1;
export const INCOMPLETE = -2;
export const OVERSIZE = -3;
export const UNDERSIZE = -4;

/** A zlib stream, and the place of its content. Offsets and sizes are bytes. */
export interface WholeStream {
  readonly input: Uint8Array;
  readonly start: number;
  readonly end: number;
  /** Has room for `size + 1` bytes from `outputStart`. The spare byte detects a stream that gives more. */
  readonly output: Uint8Array;
  readonly outputStart: number;
  /** Exact size of the content. */
  readonly size: number;
}

/**
 * Inflates zlib streams into buffers of the caller, thousands of times, without a zlib object per call.
 * Not re-entrant: each thread and each use needs its own.
 */
export interface Inflater {
  /**
   * Inflates one complete stream.
   *
   * @returns bytes of input used, or {@link CORRUPT}, {@link INCOMPLETE} (input ends before the stream does),
   *   {@link OVERSIZE}, {@link UNDERSIZE}
   */
  inflate(stream: WholeStream): number;
  /**
   * Inflates at most the first `room` bytes of a stream. Its input may be cut.
   *
   * @returns bytes written, or {@link CORRUPT}
   */
  prefix(input: Uint8Array, start: number, end: number, output: Uint8Array, room: number): number;
  /** Inflates streams in pieces that are too large for memory. Undefined where Node has no usable zlib handle. */
  readonly stream: InflateStream | undefined;
}

/**
 * Inflates one stream in steps: call `begin`, then `step` until it returns false.
 * `consumed` and `produced` count the bytes of the last step. See {@link Inflater.stream}.
 */
export interface InflateStream {
  begin(): void;
  /** @returns false when the data is corrupt */
  step(input: Uint8Array, start: number, end: number, output: Uint8Array): boolean;
  readonly consumed: number;
  readonly produced: number;
}

/** The error for a negative result. */
export function inflateError(result: number, details: GitStoreErrorDetails): GitStoreError {
  const at = details.offset === undefined ? "" : ` at offset ${details.offset}`;
  switch (result) {
    case OVERSIZE:
      return new GitStoreError(
        "wrong_size",
        `inflate entry${at}: gives more bytes than its header says`,
        details,
      );
    case UNDERSIZE:
      return new GitStoreError(
        "wrong_size",
        `inflate entry${at}: gives fewer bytes than its header says`,
        details,
      );
    case INCOMPLETE:
      return new GitStoreError(
        "truncated",
        `inflate entry${at}: the data ends before the stream does`,
        details,
      );
    default:
      return new GitStoreError("corrupt_zlib", `inflate entry${at}: not a zlib stream`, details);
  }
}

// zlib.h
const Z_SYNC_FLUSH = 2;
const Z_FINISH = 4;
const Z_BUF_ERROR = -5;

/**
 * Uses Node's internal handle. It is twice as fast on small entries as `inflateSync`, which builds a stream object each
 * time. `handleWorks` checks its behaviour before use.
 */
class HandleInflater implements Inflater, InflateStream {
  readonly stream: InflateStream = this;
  consumed = 0;
  produced = 0;
  readonly #zlib = new ZlibHandle(createInflate());

  inflate({ input, start, end, output, outputStart, size }: WholeStream): number {
    this.#zlib.errno = 0;
    this.#zlib.handle.reset();
    this.#zlib.handle.writeSync(Z_FINISH, input, start, end - start, output, outputStart, size + 1);
    if (this.#zlib.errno !== 0) return this.#zlib.errno === Z_BUF_ERROR ? INCOMPLETE : CORRUPT;
    const left = this.#zlib.outputLeft;
    if (left === 0) return OVERSIZE;
    if (left > 1) return UNDERSIZE;
    return end - start - this.#zlib.inputLeft;
  }

  prefix(input: Uint8Array, start: number, end: number, output: Uint8Array, room: number): number {
    this.#zlib.errno = 0;
    this.#zlib.handle.reset();
    this.#zlib.handle.writeSync(Z_SYNC_FLUSH, input, start, end - start, output, 0, room);
    return this.#zlib.errno === 0 ? room - this.#zlib.outputLeft : CORRUPT;
  }

  begin(): void {
    this.#zlib.handle.reset();
  }

  step(input: Uint8Array, start: number, end: number, output: Uint8Array): boolean {
    this.#zlib.errno = 0;
    this.#zlib.handle.writeSync(Z_SYNC_FLUSH, input, start, end - start, output, 0, output.length);
    if (this.#zlib.errno !== 0) return false;
    this.produced = output.length - this.#zlib.outputLeft;
    this.consumed = end - start - this.#zlib.inputLeft;
    return true;
  }
}

/** Uses Node's documented functions, for a Node version whose handle differs. */
export class PublicInflater implements Inflater {
  readonly stream = undefined;

  inflate({ input, start, end, output, outputStart, size }: WholeStream): number {
    const result = inflatePublic(input.subarray(start, end), Z_FINISH, size + 1);
    if (typeof result === "number") return result;
    if (result.buffer.length > size) return OVERSIZE;
    if (result.buffer.length < size) return UNDERSIZE;
    output.set(result.buffer, outputStart);
    return result.engine.bytesWritten;
  }

  prefix(input: Uint8Array, start: number, end: number, output: Uint8Array, room: number): number {
    // inflateSync refuses to cut the output, so this cuts the input. 1 KiB gives the few bytes that callers need.
    for (let take = 1024; ; take *= 2) {
      const cut = Math.min(end, start + take);
      const result = inflatePublic(input.subarray(start, cut), Z_SYNC_FLUSH, undefined);
      if (typeof result === "number") return result;
      if (result.buffer.length >= room || cut === end) {
        const head = result.buffer.subarray(0, room);
        output.set(head);
        return head.length;
      }
    }
  }
}

function inflatePublic(
  input: Uint8Array,
  finishFlush: number,
  maxOutputLength: number | undefined,
): { buffer: Uint8Array; engine: { bytesWritten: number } } | number {
  try {
    return inflateSync(input, {
      info: true,
      finishFlush,
      ...(maxOutputLength === undefined ? {} : { maxOutputLength }),
    }) as unknown as { buffer: Uint8Array; engine: { bytesWritten: number } };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ERR_BUFFER_TOO_LARGE") return OVERSIZE;
    return code === "Z_BUF_ERROR" ? INCOMPLETE : CORRUPT;
  }
}

/** The fastest inflater that this Node supports. */
export function createInflater(): Inflater {
  return handleWorks ? new HandleInflater() : new PublicInflater();
}

/** Result of checking each assumption about the handle, once at load. If one is wrong, the public functions are used. */
const handleWorks = ((): boolean => {
  try {
    const content = Buffer.from("a pack entry, a pack entry, a pack entry");
    const packed = Buffer.concat([deflateSync(content), Buffer.from("next")]);
    const end = packed.length;
    const used = end - 4;
    const output = Buffer.alloc(content.length + 1);
    const inflater = new HandleInflater();
    const inflate = (change: Partial<WholeStream> = {}): number =>
      inflater.inflate({
        input: packed,
        start: 0,
        end,
        output,
        outputStart: 0,
        size: content.length,
        ...change,
      });
    const decodes = inflate() === used;
    const same = output.subarray(0, content.length).equals(content);
    const bad = Buffer.from(packed);
    bad[used - 1]! ^= 1;
    return (
      decodes &&
      same &&
      inflate({ end: used - 1 }) === INCOMPLETE &&
      inflate({ size: content.length - 1 }) === OVERSIZE &&
      inflate({ output: Buffer.alloc(content.length + 2), size: content.length + 1 }) === UNDERSIZE &&
      inflate({ input: bad }) === CORRUPT &&
      inflate() === used &&
      inflater.prefix(packed, 0, end, output, 5) === 5
    );
  } catch {
    return false;
  }
})();
