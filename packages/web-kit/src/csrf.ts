import { randomBytes } from "node:crypto";
import { systemClock, type Clock } from "@devplat/base";

/** A token is good for this long, in milliseconds (spec/agent.md section 6). */
const LIFETIME_MS = 10 * 60 * 1000;
/** At most this many are outstanding; the oldest goes first. */
const MAX_OUTSTANDING = 1000;

/** One-time CSRF tokens for API mutations. */
export class CsrfTokens {
  readonly #clock: Clock;
  /** Insertion order is age order. */
  readonly #expiry = new Map<string, number>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  issue(): string {
    for (const oldest of this.#expiry.keys()) {
      if (this.#expiry.size < MAX_OUTSTANDING) break;
      this.#expiry.delete(oldest);
    }
    const token = randomBytes(32).toString("base64url");
    this.#expiry.set(token, this.#clock.now() + LIFETIME_MS);
    return token;
  }

  /** Uses a token up. False: unknown, used before, or too old. */
  redeem(token: string | undefined): boolean {
    if (token === undefined) return false;
    const expiry = this.#expiry.get(token);
    this.#expiry.delete(token);
    return expiry !== undefined && this.#clock.now() < expiry;
  }
}
