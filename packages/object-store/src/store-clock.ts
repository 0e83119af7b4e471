import type { Clock } from "@devplat/base";

/** Difference in milliseconds that the whole seconds of a `Date` header and the way of a response explain. */
const NOISE_MS = 2000;

/**
 * Clock of the store, learned from the `Date` header of its responses. Signatures need it: a store refuses requests that are
 * more than 15 minutes from its own time.
 */
export class StoreClock {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  /** Time of the store minus the monotonic time here, in milliseconds, so that a step of the local clock changes nothing. */
  #offsetMs: number | undefined;

  constructor(clock: Pick<Clock, "now" | "monotonic">) {
    this.#clock = clock;
  }

  /** Milliseconds since the epoch. Before the first response: the local time. */
  now(): number {
    return this.#offsetMs === undefined ? this.#clock.now() : this.#clock.monotonic() + this.#offsetMs;
  }

  /** Reads a time of the store, in milliseconds since the epoch. */
  learn(date: number | undefined): void {
    if (date === undefined) return;
    if (this.#offsetMs !== undefined && Math.abs(date - this.now()) < NOISE_MS) return;
    const local = this.#clock.now();
    this.#offsetMs = (Math.abs(date - local) < NOISE_MS ? local : date) - this.#clock.monotonic();
  }
}
