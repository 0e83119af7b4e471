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
