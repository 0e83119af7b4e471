import type { Clock } from "@devplat/base";
import { addressKey } from "../http/address-key.ts";

/** Probes that one client may set off per minute; a busy CI behind one address stays below. */
export const DEFAULT_PROBES_PER_MINUTE = 1200;
/** Clients that are remembered; the longest unseen is forgotten first. */
const MAX_CLIENTS = 10_000;
const MINUTE_MS = 60_000;

interface Bucket {
  tokens: number;
  filledAt: number;
}

/**
 * A limit, per client address, on the questions that a fetch without a grant makes us ask the code host: a token
 * bucket that holds a minute's worth.
 */
export class ProbeLimit {
  readonly #perMinute: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: number, clock: Clock) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** Takes one probe from the client's share; false: none is left. */
  take(address: string): boolean {
    const client = addressKey(address);
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(client) ?? { tokens: this.#perMinute, filledAt: now };
    const refilled = bucket.tokens + ((now - bucket.filledAt) * this.#perMinute) / MINUTE_MS;
    bucket.tokens = Math.min(this.#perMinute, refilled);
    bucket.filledAt = now;
    this.#buckets.delete(client);
    this.#buckets.set(client, bucket);
    if (this.#buckets.size > MAX_CLIENTS) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}
