/** Large bodies that are read and decoded at the same time. */
const MAX_TURNS = 8;
/** Milliseconds after which a body is read without a turn: those that have one may be of slow clients. */
const MAX_WAIT_MS = 1000;

/**
 * Turns for reading large bodies. A crowd that sends megabytes of wants at the same time mostly sends the same: read a few
 * at a time, the others find what they mean already decoded, and their bytes are not kept.
 */
export class BodyTurns {
  readonly #max: number;
  readonly #maxWaitMs: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  /** Default {@link MAX_TURNS}, {@link MAX_WAIT_MS}. */
  constructor(max = MAX_TURNS, maxWaitMs = MAX_WAIT_MS) {
    this.#max = max;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Waits for a turn, but not for long. @returns gives the turn back; calling it again does nothing */
  async take(): Promise<() => void> {
    let taken = true;
    if (this.#taken < this.#max) this.#taken++;
    else taken = await this.#wait();
    return () => {
      if (taken) this.#pass();
      taken = false;
    };
  }

  /** @returns false: no turn came in time */
  async #wait(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const start = (): void => resolve(true);
    this.#waiting.add(start);
    const timer = setTimeout(() => {
      this.#waiting.delete(start);
      resolve(false);
    }, this.#maxWaitMs);
    timer.unref();
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  #pass(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#taken--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
