import type { Clock } from "@devplat/base";

/** Waits until the next cycle is due. Its time may change during the wait. */
export class CycleTimer {
  readonly #clock: Clock;
  #dueAt: number | null = null;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds since the epoch. Null while a cycle runs, and before the first one. */
  get dueAt(): number | null {
    return this.#dueAt;
  }

  /** Sets the time of the next cycle. */
  planIn(ms: number): void {
    this.#dueAt = this.#clock.now() + ms;
    this.#wake?.();
  }

  /** A cycle has started. */
  clear(): void {
    this.#dueAt = null;
  }

  /** Returns when a cycle is due or has started, or when the signal fires. */
  async wait(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#wake?.();
    signal.addEventListener("abort", wake);
    try {
      while (!signal.aborted && this.#dueAt !== null) {
        const left = this.#dueAt - this.#clock.now();
        if (left <= 0) return;
        const woken = new AbortController();
        this.#wake = () => woken.abort();
        await this.#clock.sleep(left, woken.signal).catch(() => undefined);
      }
    } finally {
      this.#wake = undefined;
      signal.removeEventListener("abort", wake);
    }
  }
}
