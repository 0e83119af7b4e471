import type { Clock } from "@devplat/base";

/**
 * Calls many functions at the same moments, from one timer: one wake-up of the process costs less than many. The timer runs
 * only while there is a function.
 */
export class IntervalGroup {
  readonly #ms: number;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #functions = new Set<() => void>();
  #stop = new AbortController();

  /** @param ms between two calls of a function */
  constructor(ms: number, clock: Pick<Clock, "sleep">) {
    this.#ms = ms;
    this.#clock = clock;
  }

  /** Calls a function, which must not throw, for the first time within one interval. @returns ends the calls */
  add(call: () => void): () => void {
    // The same function may be added twice.
    const own = (): void => call();
    this.#functions.add(own);
    if (this.#functions.size === 1) void this.#run();
    return () => {
      if (this.#functions.delete(own) && this.#functions.size === 0) this.#stop.abort();
    };
  }

  async #run(): Promise<void> {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    for (;;) {
      await this.#clock.sleep(this.#ms, signal).catch(() => undefined);
      if (signal.aborted) return;
      for (const call of this.#functions) call();
    }
  }
}
