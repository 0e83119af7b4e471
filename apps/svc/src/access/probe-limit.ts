import type { Clock } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import { addressKey } from "@devplat/config/address-key";

/** Probes that one client may set off per minute; a busy CI behind one address stays below. */
export const PROBES_PER_MINUTE = 1200;
const MINUTE_MS = 60_000;

/** A limit, per client address, on the probes of the code host that a fetch without an authorization causes. */
export class ProbeLimit {
  readonly #buckets: TokenBucket;

  constructor(perMinute: number, clock: Clock) {
    this.#buckets = new TokenBucket({ capacity: perMinute, refillMs: MINUTE_MS, clock });
  }

  /** Takes one probe from the client's share; false: none is left. */
  take(address: string): boolean {
    return this.#buckets.take(addressKey(address)) === 0;
  }
}
