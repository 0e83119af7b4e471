import { createHash } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";

/** More tokens than this never take turns in one place; the oldest is forgotten. */
const MAX_DENIED = 16;
/** A store that denies by mistake is asked again after this long, in milliseconds. */
const REPROBE_MS = 15 * 60_000;

/** SHA-256 of a token, for telling tokens apart without keeping them. A token has too much entropy to be guessed. */
export function tokenDigest(token: Secret): string {
  return createHash("sha256").update(token.reveal()).digest("base64url");
}

/** Tokens that the store has refused, so that a dead one in its file is not proven anew at every look. */
export class DeniedTokens {
  readonly #clock: Clock;
  /** Digest to the time of the refusal on the monotonic clock; oldest first. */
  readonly #denied = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(token: Secret): void {
    const digest = tokenDigest(token);
    this.#denied.delete(digest);
    this.#denied.set(digest, this.#clock.monotonic());
    const [oldest] = this.#denied.keys();
    if (this.#denied.size > MAX_DENIED && oldest !== undefined) this.#denied.delete(oldest);
  }

  /** False again after 15 minutes: then the store is to be asked once more. */
  has(token: Secret): boolean {
    const digest = tokenDigest(token);
    const since = this.#denied.get(digest);
    if (since === undefined) return false;
    if (this.#clock.monotonic() - since < REPROBE_MS) return true;
    this.#denied.delete(digest);
    return false;
  }
}
