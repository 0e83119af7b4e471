import type { Clock } from "@devplat/base";
import { SvcError } from "../errors.ts";

/** Callers remembered; past that the oldest window goes, in which case a caller begins anew. */
const MAX_REMEMBERED = 10_000;

/**
 * Counts tries per caller in windows of fixed length. In memory of this instance: N instances allow N times as much,
 * which the bounds leave room for.
 */
export class RateLimit {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #clock: Clock;
  /** Insertion order is age order. */
  readonly #windows = new Map<string, { readonly endsAt: number; count: number }>();

  /** @param limit tries of one caller in `windowMs` milliseconds */
  constructor(limit: number, windowMs: number, clock: Clock) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#clock = clock;
  }

  /**
   * Counts a try.
   *
   * @param caller an address (address-key.ts) or a user's id
   * @throws SvcError `too_many_requests`, with the seconds to wait in its hint
   */
  take(caller: string): void {
    const now = this.#clock.monotonic();
    let window = this.#windows.get(caller);
    if (window === undefined || window.endsAt <= now) {
      this.#windows.delete(caller);
      window = { endsAt: now + this.#windowMs, count: 0 };
      this.#windows.set(caller, window);
      for (const oldest of this.#windows.keys()) {
        if (this.#windows.size <= MAX_REMEMBERED) break;
        this.#windows.delete(oldest);
      }
    }
    if (++window.count <= this.#limit) return;
    const seconds = Math.ceil((window.endsAt - now) / 1000);
    throw new SvcError("too_many_requests", "Too many tries", {
      remedy: "retry",
      hint: `Try again in ${seconds} s.`,
    });
  }
}
