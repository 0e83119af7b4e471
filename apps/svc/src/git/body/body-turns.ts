import { Semaphore, type Release } from "@devplat/base/semaphore";

/** Large bodies that are read and decoded at the same time. */
const MAX_TURNS = 8;
/** Milliseconds after which a body is read without a turn: those that have one may be of slow clients. */
const MAX_WAIT_MS = 1000;

/**
 * Turns for reading large bodies. Many clients that send megabytes of wants at the same time mostly send the same bytes.
 * If a few are read at a time, the others are already decoded, and their bytes are not kept.
 */
export class BodyTurns {
  readonly #turns: Semaphore;
  readonly #maxWaitMs: number;

  /** Default {@link MAX_TURNS}, {@link MAX_WAIT_MS}. */
  constructor(max = MAX_TURNS, maxWaitMs = MAX_WAIT_MS) {
    this.#turns = new Semaphore(max);
    this.#maxWaitMs = maxWaitMs;
  }

  /** Waits for a turn, but not for long. @returns gives the turn back */
  async take(): Promise<Release> {
    const turn = this.#turns.tryAcquire();
    if (turn !== undefined) return turn;
    const late = AbortSignal.timeout(this.#maxWaitMs);
    return this.#turns.acquire(late).catch(() => () => undefined);
  }
}
