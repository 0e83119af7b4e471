import type { Clock } from "@devplat/base";

/** Where the clock of a test starts, in milliseconds. */
export const START = 1_000_000;

/** A clock that a test moves. */
export class ManualClock implements Clock {
  ms = START;
  now(): number {
    return this.ms;
  }
  monotonic(): number {
    return this.ms;
  }
  sleep(): Promise<void> {
    return Promise.resolve();
  }
}
