import { setTimeout as sleepFor } from "node:timers/promises";

/** Time as the parts see it. Passed in, so that a test can run a day in a second. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds from some fixed point; never goes back. For durations. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with an AbortError when the signal fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    await sleepFor(ms, undefined, signal === undefined ? {} : { signal });
  },
};
