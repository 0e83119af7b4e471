import type { Clock } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import type { SharedRate } from "./shared-rate.ts";

const MINUTE_MS = 60_000;

/**
 * Limits the requests of each token, by its own limit or the common one, the lower of both: a bucket of a minute's requests that
 * refills evenly, and over all instances the requests of one minute in each minute of the clock.
 */
export class TokenRate {
  #perMinute: number;
  readonly #shared: SharedRate | undefined;
  readonly #buckets: TokenBucket;

  /** @param perMinute requests per minute and token; 0: no limit @param shared undefined: instances do not count together */
  constructor(perMinute: number, clock: Clock, shared?: SharedRate) {
    this.#shared = shared;
    this.#perMinute = perMinute;
    this.#buckets = new TokenBucket({ capacity: perMinute, refillMs: MINUTE_MS, clock });
  }

  setPerMinute(perMinute: number): void {
    this.#perMinute = perMinute;
  }

  /**
   * Takes one request of the token.
   *
   * @param own the token's own limit, if it has one
   * @returns seconds to wait if it has none left; a promise if the database must be queried
   */
  take(id: string, own?: number): number | undefined | Promise<number | undefined> {
    const perMinute = Math.min(own ?? Infinity, this.#perMinute === 0 ? Infinity : this.#perMinute);
    if (perMinute === Infinity) return undefined;
    const refill = this.#buckets.take(id, perMinute);
    if (refill > 0) return Math.max(refill, this.#shared?.wait(id) ?? 0);
    const wait = this.#shared?.take(id, perMinute);
    // Requests that another instance counted do not count here.
    const refund = (seconds: number | undefined): number | undefined => {
      if (seconds !== undefined) this.#buckets.giveBack(id);
      return seconds;
    };
    return wait instanceof Promise ? wait.then(refund) : refund(wait);
  }
}
