import type { Clock } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import { SvcError } from "../../errors.ts";
import { addressKey } from "@devplat/config/address-key";

const MINUTE_MS = 60_000;
/** Beginnings and ends of logins, and device codes asked for, of one address in a minute: an office behind one address. */
const LOGINS = 60;
/** User codes tried by one user, or from one address, in ten minutes (RFC 8628 section 5.1: guessing must not pay). */
const USER_CODES = 10;

/**
 * Limits on actions that need no sign-in, and on guessing. In memory of this instance: N instances allow N times as
 * much, for which the limits leave room.
 */
export class LoginLimits {
  readonly #logins: TokenBucket;
  readonly #codes: TokenBucket;

  constructor(clock: Clock) {
    this.#logins = new TokenBucket({ capacity: LOGINS, refillMs: MINUTE_MS, clock });
    this.#codes = new TokenBucket({ capacity: USER_CODES, refillMs: 10 * MINUTE_MS, clock });
  }

  /** @throws SvcError `too_many_requests`, with the seconds to wait in its hint */
  login(address: string): void {
    take(this.#logins, addressKey(address));
  }

  /** @throws SvcError `too_many_requests`, with the seconds to wait in its hint */
  userCode(userId: string, address: string): void {
    take(this.#codes, userId);
    take(this.#codes, addressKey(address));
  }
}

function take(buckets: TokenBucket, caller: string): void {
  const seconds = buckets.take(caller);
  if (seconds === 0) return;
  throw new SvcError("too_many_requests", "Too many tries", {
    remedy: "retry",
    hint: `Try again in ${seconds} s.`,
  });
}
