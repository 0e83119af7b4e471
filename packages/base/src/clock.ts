import { setTimeout as sleepFor } from "node:timers/promises";

/** Source of time. It is passed in, so that a test can run a day in a second. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds since a fixed point. It never goes back. For durations. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds. Rejects with an AbortError if the signal fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    await sleepFor(ms, undefined, signal === undefined ? {} : { signal });
  },
};

/** A time limit by a clock that a test can move. Dispose it when the work has ended, so that no timer is left. */
export class TimeLimit implements Disposable {
  /** Fires with a `TimeoutError` after the time, or as soon as one of the other signals does. */
  readonly signal: AbortSignal;
  readonly #ended = new AbortController();

  /** @param ms duration in milliseconds @param signals that end the work as well */
  constructor(clock: Pick<Clock, "sleep">, ms: number, ...signals: readonly AbortSignal[]) {
    const timeout = new AbortController();
    this.signal = AbortSignal.any([timeout.signal, ...signals]);
    clock.sleep(ms, AbortSignal.any([this.#ended.signal, ...signals])).then(
      () => timeout.abort(new DOMException("the time limit is over", "TimeoutError")),
      () => undefined,
    );
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }
}
