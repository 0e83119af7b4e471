import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";

/** A token is good for this long, in milliseconds (spec/agent.md section 6). */
const LIFETIME_MS = 10 * 60 * 1000;
/** At most this many are outstanding; the oldest goes first. */
const MAX_OUTSTANDING = 1000;

/** One-time CSRF tokens for API mutations. */
export class CsrfTokens {
  readonly #outstanding: BoundedMap<string, true>;

  constructor(clock: Clock = systemClock) {
    this.#outstanding = new BoundedMap({ max: MAX_OUTSTANDING, ttlMs: LIFETIME_MS, now: () => clock.now() });
  }

  issue(): string {
    const token = randomBytes(32).toString("base64url");
    this.#outstanding.set(token, true);
    return token;
  }

  /** Uses a token up. False: unknown, used before, or too old. */
  redeem(token: string | undefined): boolean {
    if (token === undefined) return false;
    const isGood = this.#outstanding.peek(token) === true;
    this.#outstanding.delete(token);
    return isGood;
  }
}
