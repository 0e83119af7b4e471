import type { Clock } from "@devplat/base";
import type { SharedRate } from "./shared-rate.ts";

/** Tokens whose rate is remembered; the one unseen for longest is forgotten, and starts anew. */
const MAX_REMEMBERED = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  /** Requests that may still come at once. */
  left: number;
  filledAt: number;
}

/**
 * Bounds the requests of each token, by its own bound or the common one, the lower of both: a bucket of a minute's worth that
 * refills evenly, and over all instances a minute's worth in each minute of the clock.
 */
export class TokenRate {
  #perMinute: number;
  readonly #clock: Clock;
  readonly #shared: SharedRate | undefined;
  readonly #buckets = new Map<string, Bucket>();

  /** @param perMinute requests per minute and token; 0: no bound @param shared undefined: instances do not count together */
  constructor(perMinute: number, clock: Clock, shared?: SharedRate) {
    this.#shared = shared;
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  setPerMinute(perMinute: number): void {
    this.#perMinute = perMinute;
  }

  /**
   * Takes one request of the token.
   *
   * @param own the token's own bound, if it has one
   * @returns seconds to wait when it has none left; a promise where the database has to be asked
   */
  take(id: string, own?: number): number | undefined | Promise<number | undefined> {
    const perMinute = Math.min(own ?? Infinity, this.#perMinute === 0 ? Infinity : this.#perMinute);
    if (perMinute === Infinity) return undefined;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(id) ?? { left: perMinute, filledAt: now };
    const perMs = perMinute / MINUTE_MS;
    bucket.left = Math.min(perMinute, bucket.left + (now - bucket.filledAt) * perMs);
    bucket.filledAt = now;
    this.#buckets.delete(id);
    this.#buckets.set(id, bucket);
    if (this.#buckets.size > MAX_REMEMBERED) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    if (bucket.left < 1) {
      const refill = Math.max(1, Math.ceil((1 - bucket.left) / perMs / 1000));
      return Math.max(refill, this.#shared?.wait(id) ?? 0);
    }
    bucket.left--;
    const wait = this.#shared?.take(id, perMinute);
    // What another instance has used up was not used here.
    const refund = (seconds: number | undefined): number | undefined => {
      if (seconds !== undefined) bucket.left++;
      return seconds;
    };
    return wait instanceof Promise ? wait.then(refund) : refund(wait);
  }
}
