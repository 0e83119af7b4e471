/** Entries with a size. The least recently used ones go when the sum is above a limit: a disk cache, or the page cache. */
export class ByteLru {
  readonly #limit: number;
  readonly #removed: (key: string) => void;
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  /** @param removed gets each key that was evicted */
  constructor(limit: number, removed: (key: string) => void = () => undefined) {
    this.#limit = limit;
    this.#removed = removed;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Marks an entry as used. @returns whether it is here */
  touch(key: string): boolean {
    const size = this.#sizes.get(key);
    if (size === undefined) return false;
    this.#sizes.delete(key);
    this.#sizes.set(key, size);
    return true;
  }

  /** Adds an entry, or changes its size. One that is larger than the limit is not kept. */
  set(key: string, size: number): void {
    this.#bytes += size - (this.#sizes.get(key) ?? 0);
    this.#sizes.delete(key);
    this.#sizes.set(key, size);
    for (const [oldest, bytes] of this.#sizes) {
      if (this.#bytes <= this.#limit) return;
      this.#sizes.delete(oldest);
      this.#bytes -= bytes;
      this.#removed(oldest);
    }
  }
}
