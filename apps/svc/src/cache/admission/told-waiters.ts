/**
 * Limit of the clients that were told that they wait, in all queues together. Each of them holds a connection and the objects
 * that it wants, about 1 MB for a repository of a few million objects, and must be served.
 */
export const MAX_TOLD = 256;

/** Counts the clients that were told that they wait. */
export class ToldWaiters {
  readonly #max: number;
  #count = 0;

  constructor(max: number = MAX_TOLD) {
    this.#max = max;
  }

  get count(): number {
    return this.#count;
  }

  /** Whether no further client may be told: all that cannot be served soon are refused. */
  get isFull(): boolean {
    return this.#count >= this.#max;
  }

  /** @returns function that ends the wait; undefined: the limit is reached */
  begin(): (() => void) | undefined {
    if (this.isFull) return undefined;
    this.#count++;
    let ended = false;
    return () => {
      if (!ended) this.#count--;
      ended = true;
    };
  }
}
