import type { Clock } from "../clock.ts";

/** A timer that fires this much too late has been lost. The host may be loaded for seconds. In milliseconds. */
const MAX_LATE_MS = 60_000;

interface LoopState {
  readonly name: string;
  readonly maxWorkMs: number;
  /** A loop that has not begun yet is not late. */
  state: "new" | "works" | "sleeps";
  /** On the monotonic clock: the begin of the work, or the end of the sleep. */
  at: number;
}

/** Tells which loops of a program make no progress any more. A loop works and sleeps in turn. */
export class LoopMonitor {
  readonly #clock: Clock;
  readonly #loops: LoopState[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A clock for one loop. The loop must do nothing else with `sleep` than wait for its next turn.
   *
   * @param name for people
   * @param maxWorkMs longest time of one turn, in milliseconds
   */
  clockOf(name: string, maxWorkMs: number): Clock {
    const clock = this.#clock;
    const loop: LoopState = { name, maxWorkMs, state: "new", at: 0 };
    this.#loops.push(loop);
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: async (ms, signal) => {
        loop.state = "sleeps";
        loop.at = clock.monotonic() + ms;
        try {
          await clock.sleep(ms, signal);
        } finally {
          loop.state = "works";
          loop.at = clock.monotonic();
        }
      },
    };
  }

  /** The first loop that makes no progress, and the reason. */
  fault(): string | undefined {
    const now = this.#clock.monotonic();
    for (const { name, state, at, maxWorkMs } of this.#loops) {
      const late = now - at;
      if (state === "works" && late > maxWorkMs) return `${name}: one turn takes ${seconds(late)} s`;
      if (state === "sleeps" && late > MAX_LATE_MS) return `${name}: its timer is late by ${seconds(late)} s`;
    }
    return undefined;
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}
