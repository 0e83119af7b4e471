/** Steps of builds that run at the same time. Builds share one thread: more would only hold more memory. */
const MAX_STEPS = 2;

interface Waiter {
  readonly start: () => void;
}

/**
 * Bounds how many answers are computed at the same time. A build has a place only while it computes its next chunk: it
 * has none while it waits for the disk, or for a client that reads slowly. Builds that have not begun go first, so that
 * each client soon gets its first byte, however long the answers of others are.
 */
export class BuildPlaces {
  readonly #max: number;
  readonly #first: Waiter[] = [];
  readonly #next: Waiter[] = [];
  #running = 0;

  /** @param max default {@link MAX_STEPS} */
  constructor(max = MAX_STEPS) {
    this.#max = max;
  }

  /** Builds that compute a chunk now. */
  get running(): number {
    return this.#running;
  }

  /**
   * The chunks of a build, each computed in a place.
   *
   * @param signal ends the wait for a place; the iterator then throws its reason
   * @param held size of the part that is computed first, bytes
   */
  async *run(
    chunks: AsyncGenerator<Buffer, void, undefined>,
    signal: AbortSignal,
    held: number,
  ): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (let size = 0; ;) {
        await this.#take(size < held ? this.#first : this.#next, signal);
        let step: IteratorResult<Buffer, void>;
        try {
          step = await chunks.next();
        } finally {
          this.#leave();
        }
        if (step.done === true) return;
        size += step.value.length;
        yield step.value;
      }
    } finally {
      await chunks.return(undefined);
    }
  }

  async #take(queue: Waiter[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#running < this.#max) {
      this.#running++;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { start: resolve };
    const giveUp = (): void => {
      const at = queue.indexOf(waiter);
      // It may have got its place in this very turn: then it runs, and finds the signal itself.
      if (at < 0) return;
      queue.splice(at, 1);
      reject(signal.reason as Error);
    };
    queue.push(waiter);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** Gives the place to the next who waits. */
  #leave(): void {
    const waiter = this.#first.shift() ?? this.#next.shift();
    if (waiter === undefined) this.#running--;
    else waiter.start();
  }
}
