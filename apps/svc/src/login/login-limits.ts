import type { Clock } from "@devplat/base";
import { addressKey } from "../http/address-key.ts";
import { RateLimit } from "./rate-limit.ts";

const MINUTE_MS = 60_000;
/** Beginnings and ends of logins, and device codes asked for, of one address in a minute: an office behind one address. */
const LOGINS = 60;
/** User codes tried by one user, or from one address, in ten minutes (RFC 8628 section 5.1: guessing must not pay). */
const USER_CODES = 10;

/** Bounds on what nobody has to be signed in for, and on guessing. */
export class LoginLimits {
  readonly #logins: RateLimit;
  readonly #codes: RateLimit;

  constructor(clock: Clock) {
    this.#logins = new RateLimit(LOGINS, MINUTE_MS, clock);
    this.#codes = new RateLimit(USER_CODES, 10 * MINUTE_MS, clock);
  }

  /** @throws SvcError `too_many_requests` */
  login(address: string): void {
    this.#logins.take(addressKey(address));
  }

  /** @throws SvcError `too_many_requests` */
  userCode(userId: string, address: string): void {
    this.#codes.take(userId);
    this.#codes.take(addressKey(address));
  }
}
