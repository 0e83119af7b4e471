import { FileError } from "../file-error.ts";
import type { MemoryBudget } from "./memory-budget.ts";

/** Memory of a file besides its bytes. */
const FILE_BYTES = 256;

/** Bytes of a file that can be written at any place. */
export class FileBuffer {
  readonly #budget: MemoryBudget;
  readonly #maxSize: number;
  /** At least the bytes of the file. */
  #room: Buffer;
  #size: number;
  #isReleased = false;

  /**
   * @param bytes content at the start. They are copied
   * @param maxSize in bytes
   * @throws FileError ENOSPC
   */
  constructor(bytes: Buffer, maxSize: number, budget: MemoryBudget) {
    budget.take(FILE_BYTES + bytes.length);
    this.#budget = budget;
    this.#maxSize = maxSize;
    this.#room = Buffer.from(bytes);
    this.#size = bytes.length;
  }

  get size(): number {
    return this.#size;
  }

  read(offset: number, size: number): Buffer {
    return this.#room.subarray(Math.min(offset, this.#size), Math.min(offset + size, this.#size));
  }

  /** @throws FileError EFBIG; ENOSPC. Then nothing is changed */
  write(offset: number, data: Buffer): void {
    const end = offset + data.length;
    if (end > this.#size) this.resize(end);
    data.copy(this.#room, offset);
  }

  /** New bytes are zero. @throws FileError EFBIG; ENOSPC. Then nothing is changed */
  resize(size: number): void {
    if (size > this.#maxSize) throw new FileError("EFBIG");
    if (size > this.#size) this.#budget.take(size - this.#size);
    else this.#budget.release(this.#size - size);
    if (size > this.#room.length) {
      const room = Buffer.alloc(Math.min(this.#maxSize, Math.max(size, 2 * this.#room.length)));
      this.#room.copy(room, 0, 0, this.#size);
      this.#room = room;
    } else if (size < this.#size) this.#room.fill(0, size, this.#size);
    this.#size = size;
  }

  copy(): Buffer {
    return Buffer.from(this.#room.subarray(0, this.#size));
  }

  /** Gives the memory back. The buffer must not be used after it. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#budget.release(FILE_BYTES + this.#size);
    this.#room = Buffer.alloc(0);
    this.#size = 0;
  }
}
