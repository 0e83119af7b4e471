import { BoundedMap } from "./bounded-map.ts";
import { systemClock, type Clock } from "./clock.ts";

/** Default number of keys whose buckets are remembered. */
const MAX_KEYS = 10_000;

export interface TokenBucketOptions {
  /** Tokens in a full bucket, and tokens added in `refillMs`. With less than 1, every action is refused. */
  readonly capacity: number;
  /** Milliseconds until an empty bucket is full. */
  readonly refillMs: number;
  /** Maximum keys that are remembered. The least recently used key is evicted; its bucket is then full again. Default 10,000. */
  readonly maxKeys?: number;
  /** Default {@link systemClock}. */
  readonly clock?: Pick<Clock, "monotonic">;
}

interface Bucket {
  tokens: number;
  filledAt: number;
}

/** A rate limit for each key. A bucket of tokens is full at first and refills evenly. Each action takes one token. */
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
   * Takes a token from the key's bucket.
   *
   * @param capacity new capacity of this key's bucket. Default: the capacity of the constructor
   * @returns 0 if a token was taken, else the seconds until the next token, rounded up
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

  /** Returns a token to the bucket, for an action that did not take place. */
  giveBack(key: string): void {
    const bucket = this.#buckets.peek(key);
    if (bucket !== undefined) bucket.tokens++;
  }
}
