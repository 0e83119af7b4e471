import type { Clock } from "@devplat/base";
import { addressKey } from "@devplat/config/address-key";
import type { AuditEvent } from "./audit-event.ts";

/** What one address is refused, or fails at, and is written down in a window: a broken client shows, a flood does not fill the disk. */
const PER_ADDRESS = 60;
/** The same of all unknown callers together. */
const OVERALL = 1000;
/** The same of one credential that is known, also one that is over: whoever found it may send it without end. */
const PER_CREDENTIAL = 600;
const WINDOW_MS = 60_000;

/** What becomes of an event: written down; written down as the last of this minute; or left to the access log. */
export type DenialVerdict = "record" | "record_as_last" | "leave_out";

/**
 * Bounds what callers can have written down by being refused, or by failing, which costs them nothing: each record takes
 * room in the database. What was done is never left out, nor what the service did itself.
 */
export class DenialBounds {
  readonly #clock: Clock;
  #endsAt = -Infinity;
  #overall = 0;
  #byAddress = new Map<string, number>();
  #byCredential = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  judge({ outcome, actor, remoteAddress = "" }: AuditEvent): DenialVerdict {
    if (outcome === "allowed" || actor.kind === "system") return "record";
    const now = this.#clock.monotonic();
    if (now >= this.#endsAt) {
      this.#endsAt = now + WINDOW_MS;
      this.#overall = 0;
      this.#byAddress = new Map();
      this.#byCredential = new Map();
    }
    if (actor.login !== undefined) {
      return verdict(count(this.#byCredential, actor.credentialId ?? actor.login), PER_CREDENTIAL);
    }
    // No more addresses are remembered than denials are written down.
    if (this.#overall >= OVERALL) return "leave_out";
    const ofAddress = verdict(count(this.#byAddress, addressKey(remoteAddress)), PER_ADDRESS);
    if (ofAddress === "leave_out") return ofAddress;
    this.#overall++;
    return this.#overall === OVERALL ? "record_as_last" : ofAddress;
  }
}

function count(counts: Map<string, number>, key: string): number {
  const counted = (counts.get(key) ?? 0) + 1;
  counts.set(key, counted);
  return counted;
}

function verdict(counted: number, bound: number): DenialVerdict {
  if (counted > bound) return "leave_out";
  return counted === bound ? "record_as_last" : "record";
}
