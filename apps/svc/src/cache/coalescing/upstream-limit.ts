/** Maximum concurrent fetches of one repository. More would ask the code host for the same objects several times. */
const MAX_PER_REPOSITORY = 2;

interface Waiter {
  readonly repository: string;
  readonly start: () => void;
}

/**
 * Limit of concurrent fetches from the code host: a maximum over all, and {@link MAX_PER_REPOSITORY} per repository. Turns
 * are given in the order of the requests whose repository has room, but fills come first.
 */
export class UpstreamLimit {
  readonly #max: number;
  readonly #running = new Map<string, number>();
  #total = 0;
  #waiting: Waiter[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /**
   * Waits for a turn.
   *
   * @param waitMs maximum milliseconds to wait; 0 or less: take a turn only if one is free now
   * @param first true for a fill: it gets its turn before all waiting requests, most of which need none after it
   * @returns function that returns the turn; undefined if no turn was free in time or the signal fired
   */
  async acquire(
    repository: string,
    signal: AbortSignal,
    waitMs: number,
    first = false,
  ): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    if (!this.#hasRoom(repository)) {
      if (waitMs <= 0 || !(await this.#wait(repository, signal, waitMs, first))) return undefined;
    } else {
      this.#occupy(repository);
    }
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#giveBack(repository);
    };
  }

  /** Waits until `#giveBack` occupies a turn for this caller. @returns false if the caller gave up first */
  async #wait(repository: string, signal: AbortSignal, waitMs: number, first: boolean): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const waiter: Waiter = { repository, start: () => resolve(true) };
    // The waiter is removed synchronously, so that no turn is given to a caller that left.
    const giveUp = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== waiter);
      resolve(false);
    };
    if (first) this.#waiting.unshift(waiter);
    else this.#waiting.push(waiter);
    const timer = setTimeout(giveUp, waitMs);
    timer.unref();
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
    }
  }

  #hasRoom(repository: string): boolean {
    return this.#total < this.#max && (this.#running.get(repository) ?? 0) < MAX_PER_REPOSITORY;
  }

  #occupy(repository: string): void {
    this.#total++;
    this.#running.set(repository, (this.#running.get(repository) ?? 0) + 1);
  }

  #giveBack(repository: string): void {
    this.#total--;
    const left = (this.#running.get(repository) ?? 1) - 1;
    if (left === 0) this.#running.delete(repository);
    else this.#running.set(repository, left);
    const next = this.#waiting.findIndex((waiter) => this.#hasRoom(waiter.repository));
    const [waiter] = next < 0 ? [] : this.#waiting.splice(next, 1);
    if (waiter === undefined) return;
    this.#occupy(waiter.repository);
    waiter.start();
  }
}
