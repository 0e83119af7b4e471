import type { Clock } from "@devplat/base";

/** A clock whose time changes only when a test changes it. */
export class HandClock implements Clock {
  #now = 1_000_000_000_000;
  /** Time that the steady clock does not see: the wall clock was set, or the host slept. */
  #jumped = 0;
  readonly #sleepers = new Set<{ at: number; wake: () => void }>();

  now(): number {
    return this.#now + this.#jumped;
  }

  monotonic(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(new Error("aborted"));
        return;
      }
      const sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers.delete(sleeper);
        reject(new Error("aborted"));
      });
    });
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const sleeper of this.#sleepers) {
      if (sleeper.at > this.#now) continue;
      this.#sleepers.delete(sleeper);
      sleeper.wake();
    }
  }

  /** Moves the wall clock alone. */
  jump(ms: number): void {
    this.#jumped += ms;
  }
}
