import { readSync } from "node:fs";
import { freeBuffer } from "../free-buffer.ts";
import { sliceDone } from "../slices.ts";
import type { Control } from "./control.ts";

/** Bytes read at a time. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Sequential reader of a pack file that another thread is writing. `[start, end)` of `buffer` holds the bytes that
 * are read and not yet consumed.
 */
export class PackSource {
  buffer: Buffer = Buffer.allocUnsafeSlow(2 * CHUNK_BYTES);
  start = 0;
  end = 0;
  /** Offset in the pack of `start`. */
  offset = 0;
  readonly #fd: number;
  readonly #control: Control;
  readonly #onConsumed: (bytes: Buffer) => void;
  #consumedTo = 0;
  #available = 0;

  /** @param onConsumed gets all consumed bytes in order, in long pieces that are valid only during the call */
  constructor(fd: number, control: Control, onConsumed: (bytes: Buffer) => void) {
    this.#fd = fd;
    this.#control = control;
    this.#onConsumed = onConsumed;
  }

  /** Consumes bytes. */
  consume(count: number): void {
    this.start += count;
    this.offset += count;
  }

  /** Passes the consumed bytes on to `onConsumed`. */
  flush(): void {
    if (this.start > this.#consumedTo) this.#onConsumed(this.buffer.subarray(this.#consumedTo, this.start));
    this.#consumedTo = this.start;
  }

  /** Reads until `count` bytes are available or the pack ends. @returns whether they are available */
  ensure(count: number): boolean {
    while (this.end - this.start < count) {
      if (!this.more()) return false;
    }
    return true;
  }

  /** Reads more bytes and keeps those not consumed. Waits for the writer. @returns false at the end of the pack */
  more(): boolean {
    sliceDone();
    const position = this.offset + (this.end - this.start);
    if (position >= this.#available) {
      this.#available = this.#control.waitBeyond(position);
      if (position >= this.#available) return false;
    }
    this.#makeRoom();
    const room = Math.min(this.buffer.length - this.end, this.#available - position, CHUNK_BYTES);
    const count = readSync(this.#fd, this.buffer, this.end, room, position);
    this.end += count;
    this.#control.scanned(position + count);
    return count > 0;
  }

  /** Releases the memory. The source cannot be used afterwards. */
  free(): void {
    freeBuffer(this.buffer);
  }

  #makeRoom(): void {
    if (this.buffer.length - this.end >= CHUNK_BYTES) return;
    this.flush();
    const kept = this.end - this.start;
    const roomy = kept + CHUNK_BYTES <= this.buffer.length;
    const target = roomy ? this.buffer : Buffer.allocUnsafeSlow(this.buffer.length * 2);
    this.buffer.copy(target, 0, this.start, this.end);
    if (!roomy) freeBuffer(this.buffer);
    this.buffer = target;
    this.start = 0;
    this.end = kept;
    this.#consumedTo = 0;
  }
}
