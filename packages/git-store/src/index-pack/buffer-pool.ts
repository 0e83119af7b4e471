import { freeBuffer } from "../free-buffer.ts";

/** Smaller buffers are rounded up to a power of two, so that they can be reused. */
const ROUNDED_BYTES = 1024 * 1024;

/** Pool of reusable buffers that counts the bytes of all of them. */
export class BufferPool {
  readonly #free: Buffer[] = [];
  /** Bytes of all buffers, in use or idle. */
  heldBytes = 0;

  /** Tells whether the next `take` needs no new memory. */
  waits(bytes: number): boolean {
    const last = this.#free.at(-1);
    return last !== undefined && last.length >= bytes;
  }

  /** Returns a buffer of at least `bytes`. */
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

  /** Returns a buffer to the pool for the next `take`. */
  give(buffer: Buffer): void {
    this.#free.push(buffer);
  }

  /** Releases the memory of a buffer. */
  drop(buffer: Buffer): void {
    this.heldBytes -= buffer.length;
    freeBuffer(buffer);
  }

  /** Releases all idle buffers. */
  dropWaiting(): void {
    for (const buffer of this.#free) this.drop(buffer);
    this.#free.length = 0;
  }
}
