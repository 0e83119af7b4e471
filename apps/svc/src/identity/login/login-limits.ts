import type { Clock } from "@devplat/base";
import { TokenBucket } from "@devplat/base/token-bucket";
import { SvcError } from "../../errors.ts";
import { addressKey } from "@devplat/config/address-key";

const MINUTE_MS = 60_000;
/** Maximum starts and ends of logins, and device codes, of one address in a minute: enough for an office behind NAT. */
const LOGINS = 60;
/** Maximum user codes that one user or address may try in ten minutes (RFC 8628 section 5.1, against guessing). */
const USER_CODES = 10;

/**
 * Limits on actions that need no sign-in, and on guessing. They are in the memory of one instance, so N instances allow N
 * times as much. The limits are low enough for that.
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
