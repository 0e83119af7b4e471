import { uptime } from "node:os";
import type { Clock } from "@devplat/base";

/** By how much the two clocks may part before it counts as sleep, in milliseconds; uptime is rounded to 10 ms. */
const SLEEP_MS = 2000;

export interface SleepWatchParts {
  /** Milliseconds since the start of this host, with the time that it slept. */
  readonly bootMs: () => number;
  /** Its monotonic time does not pass while the host sleeps. */
  readonly clock: Pick<Clock, "monotonic">;
}

/** Notices that this host slept. */
export class SleepWatch {
  readonly #parts: SleepWatchParts;
  #slept: number | undefined;

  constructor(parts: SleepWatchParts) {
    this.#parts = parts;
  }

  /** Whether the host has slept since the last call; false for the first one. */
  look(): boolean {
    const { bootMs, clock } = this.#parts;
    const [slept, before] = [bootMs() - clock.monotonic(), this.#slept];
    this.#slept = slept;
    return before !== undefined && slept - before > SLEEP_MS;
  }
}

/** The time since the start of this host, as the operating system tells it. */
export const systemBootMs = (): number => uptime() * 1000;
