import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";

/** Lifetime of a token, in milliseconds (spec/agent.md section 6). */
const LIFETIME_MS = 10 * 60 * 1000;
/** Maximum tokens that are not redeemed. The oldest is evicted. */
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

  /** Redeems a token once. @returns false if it is unknown, used or too old */
  redeem(token: string | undefined): boolean {
    if (token === undefined) return false;
    const isGood = this.#outstanding.peek(token) === true;
    this.#outstanding.delete(token);
    return isGood;
  }
}
