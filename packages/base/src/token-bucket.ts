import { BoundedMap } from "./bounded-map.ts";
import { systemClock, type Clock } from "./clock.ts";

/** Default number of keys whose buckets are remembered. */
const MAX_KEYS = 10_000;

export interface TokenBucketOptions {
  /** Tokens that a full bucket holds, and that it gains in `refillMs`. Less than 1: nothing is allowed. */
  readonly capacity: number;
  /** Milliseconds in which an empty bucket becomes full. */
  readonly refillMs: number;
  /** Keys that are remembered. The key used the longest ago is forgotten first; its bucket is then full again. Default 10,000. */
  readonly maxKeys?: number;
  /** Default {@link systemClock}. */
  readonly clock?: Pick<Clock, "monotonic">;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** A rate limit for each key: a bucket of tokens that is full at first and refills evenly. Each action takes one token. */
export class TokenBucket {
  readonly #capacity: number;
  readonly #refillMs: number;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #buckets: BoundedMap<string, Bucket>;

  constructor({ capacity, refillMs, maxKeys = MAX_KEYS, clock = systemClock }: TokenBucketOptions) {
    this.#capacity = capacity;
    this.#refillMs = refillMs;
    this.#clock = clock;
    this.#buckets = new BoundedMap({ max: maxKeys });
  }

  /**
   * Takes a token of the key.
   *
   * @param capacity of this key's bucket from now on. Default: the one of the constructor
   * @returns 0: a token was taken; otherwise the whole seconds until there is one, at least 1
   */
  take(key: string, capacity = this.#capacity): number {
    const now = this.#clock.monotonic();
    const perMs = capacity / this.#refillMs;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { tokens: capacity, filledAt: now };
      this.#buckets.set(key, bucket);
    }
    bucket.tokens = Math.min(capacity, bucket.tokens + (now - bucket.filledAt) * perMs);
    bucket.filledAt = now;
    if (bucket.tokens < 1) return Math.ceil((1 - bucket.tokens) / perMs / 1000);
    bucket.tokens--;
    return 0;
  }

  /** Gives back a token that was taken, for an action that did not take place. */
  giveBack(key: string): void {
    const bucket = this.#buckets.peek(key);
    if (bucket !== undefined) bucket.tokens++;
  }
}
