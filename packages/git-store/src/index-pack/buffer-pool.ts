import { freeBuffer } from "../free-buffer.ts";

/** Buffers below this are rounded up to a power of two, so that they fit again. */
const ROUNDED_BYTES = 1024 * 1024;

/** Buffers given back and taken again, and a count of all that are out or waiting. */
export class BufferPool {
  readonly #free: Buffer[] = [];
  /** Bytes of all buffers that are out or waiting. */
  heldBytes = 0;

  /** Whether the next `take` needs no new memory. */
  waits(bytes: number): boolean {
    const last = this.#free.at(-1);
    return last !== undefined && last.length >= bytes;
  }

  /** A buffer of at least `bytes`. */
  take(bytes: number): Buffer {
    const last = this.#free.pop();
    if (last !== undefined) {
      if (last.length >= bytes) return last;
      this.drop(last);
    }
    const capacity = bytes < ROUNDED_BYTES ? 2 ** Math.ceil(Math.log2(Math.max(bytes, 4096))) : bytes;
    this.heldBytes += capacity;
    return Buffer.allocUnsafeSlow(capacity);
  }

  /** Gives a buffer back for the next `take`. */
  give(buffer: Buffer): void {
    this.#free.push(buffer);
  }

  /** Gives a buffer back to the system. */
  drop(buffer: Buffer): void {
    this.heldBytes -= buffer.length;
    freeBuffer(buffer);
  }

  /** Drops all that wait. */
  dropWaiting(): void {
    for (const buffer of this.#free) this.drop(buffer);
    this.#free.length = 0;
  }
}
