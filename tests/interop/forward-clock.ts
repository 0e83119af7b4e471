import { systemClock, type Clock } from "@devplat/base";

/** Milliseconds between two readings: times that were read one after the other differ. */
const STEP_MS = 0.001;

/** A clock that hardly moves, even on a slow machine, until a test puts it forward. */
export class ForwardClock implements Clock {
  #ms = systemClock.now();

  advance(ms: number): void {
    this.#ms += ms;
  }

  now(): number {
    return this.monotonic();
  }

  monotonic(): number {
    this.#ms += STEP_MS;
    return this.#ms;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await systemClock.sleep(ms, signal);
  }
}
