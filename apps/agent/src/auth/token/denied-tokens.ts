import { createHash } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";

/** More tokens than this never take turns in one place; the oldest is forgotten. */
const MAX_DENIED = 16;
/** Time until the next request to a store that may have denied by mistake, in milliseconds. */
const REPROBE_MS = 15 * 60_000;

/** SHA-256 of a token, for telling tokens apart without keeping them. A token has too much entropy to be guessed. */
export function tokenDigest(token: Secret): string {
  return createHash("sha256").update(token.reveal()).digest("base64url");
}

/** Tokens that the store has refused, so that an expired token in a file is not sent again at every look. */
export class DeniedTokens {
  readonly #denied: BoundedMap<string, true>;

  constructor(clock: Clock) {
    this.#denied = new BoundedMap({ max: MAX_DENIED, ttlMs: REPROBE_MS, now: () => clock.monotonic() });
  }

  add(token: Secret): void {
    this.#denied.set(tokenDigest(token), true);
  }

  /** False again after 15 minutes, so that the store is asked once more. */
  has(token: Secret): boolean {
    return this.#denied.peek(tokenDigest(token)) === true;
  }
}
