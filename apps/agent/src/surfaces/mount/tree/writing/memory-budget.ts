import { FileError } from "../file-error.ts";

/** Memory for the bytes of files, up to a limit. */
export class MemoryBudget {
  readonly #limit: number;
  #used = 0;

  /** @param limit in bytes */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** @throws FileError ENOSPC, and nothing is taken */
  take(bytes: number): void {
    if (this.#used + bytes > this.#limit) throw new FileError("ENOSPC");
    this.#used += bytes;
  }

  release(bytes: number): void {
    this.#used -= bytes;
  }
}
