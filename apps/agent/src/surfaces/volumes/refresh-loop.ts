import { backoffMs, type Clock } from "@devplat/base";

/** Waits after failures. */
const RETRY = { firstMs: 1000, maxMs: 60_000 } as const;

/** Runs an action now, after each wake-up, and again after a failure. */
export class RefreshLoop {
  readonly #clock: Clock;
  #isDue = true;
  #resolve: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Has the action run soon. During a run, it runs once more. */
  wake(): void {
    this.#isDue = true;
    this.#resolve?.();
  }

  /**
   * Runs until the signal fires. Never throws.
   * @param onResult is told the error of each run, or undefined after a success
   */
  async run(
    action: (signal: AbortSignal) => Promise<void>,
    onResult: (error: unknown) => void,
    signal: AbortSignal,
  ): Promise<void> {
    let failures = 0;
    signal.addEventListener("abort", () => this.#resolve?.(), { once: true });
    while (!signal.aborted) {
      this.#isDue = false;
      try {
        await action(signal);
        failures = 0;
        if (!signal.aborted) onResult(undefined);
      } catch (error) {
        failures++;
        if (!signal.aborted) onResult(error);
      }
      await this.#pause(failures, signal);
    }
  }

  async #pause(failures: number, signal: AbortSignal): Promise<void> {
    if (this.#isDue || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#resolve = resolve;
    const over = new AbortController();
    const retry =
      failures === 0
        ? []
        : [this.#clock.sleep(backoffMs(failures, RETRY), AbortSignal.any([signal, over.signal]))];
    await Promise.race([promise, ...retry]).catch(() => undefined);
    over.abort();
    // The sleep that lost rejects.
    await Promise.allSettled(retry);
    this.#resolve = undefined;
  }
}
