import { Semaphore } from "@devplat/base/semaphore";

/** Steps of builds that run at the same time. Builds share one thread: more would only hold more memory. */
const MAX_STEPS = 2;

/**
 * Bounds how many answers are computed at the same time. A build has a place only while it computes its next chunk: it
 * has none while it waits for the disk, or for a client that reads slowly. Builds that have not begun go first, so that
 * each client soon gets its first byte, however long the answers of others are.
 */
export class BuildPlaces {
  readonly #steps: Semaphore;

  /** @param max default {@link MAX_STEPS} */
  constructor(max = MAX_STEPS) {
    this.#steps = new Semaphore(max);
  }

  /** Builds that compute a chunk now. */
  get running(): number {
    return this.#steps.taken;
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
        const leave = await this.#steps.acquire(signal, size < held);
        let step: IteratorResult<Buffer, void>;
        try {
          step = await chunks.next();
        } finally {
          leave();
        }
        if (step.done === true) return;
        size += step.value.length;
        yield step.value;
      }
    } finally {
      await chunks.return(undefined);
    }
  }
}
