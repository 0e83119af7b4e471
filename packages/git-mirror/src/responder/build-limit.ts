import { Semaphore } from "@devplat/base/semaphore";

/** Maximum number of responses that compute a chunk at the same time. They share one thread: more only hold memory. */
const MAX_STEPS = 2;

/**
 * Limits how many responses compute a chunk at the same time. A response has a place only while it computes its next chunk,
 * not while it waits for the disk or for a slow client. Responses that have not begun go first, so that each client gets
 * its first byte soon.
 */
export class BuildLimit {
  readonly #steps: Semaphore;

  constructor(max: number = MAX_STEPS) {
    this.#steps = new Semaphore(max);
  }

  /** Responses that compute a chunk now. */
  get running(): number {
    return this.#steps.taken;
  }

  /**
   * Returns the chunks of a response. Each is computed in a place.
   *
   * @param signal ends the wait for a place; the iterator then throws its reason
   * @param firstBytes size in bytes of the first part, whose chunks have priority
   */
  async *run(
    chunks: AsyncGenerator<Buffer, void, undefined>,
    signal: AbortSignal,
    firstBytes: number,
  ): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (let size = 0; ;) {
        const leave = await this.#steps.acquire(signal, size < firstBytes);
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
