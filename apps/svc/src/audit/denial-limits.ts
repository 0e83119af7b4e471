import type { Clock } from "@devplat/base";
import { addressKey } from "@devplat/config/address-key";
import type { AuditEvent } from "./audit-event.ts";

/** Maximum recorded denials and failures of one address in a window: enough to see a broken client, too few for a flood. */
const PER_ADDRESS = 60;
/** Maximum of all unknown callers together. */
const OVERALL = 1000;
/** Maximum of one known credential. A finder of an expired credential could send it without end. */
const PER_CREDENTIAL = 600;
const WINDOW_MS = 60_000;

/** Whether an event is recorded, recorded as the last one of this minute, or left to the access log. */
export type DenialVerdict = "record" | "record_as_last" | "leave_out";

/**
 * Limits the records of denials and failures, which cost a caller nothing and take space in the database. Allowed actions and
 * those of the service are always recorded.
 */
export class DenialLimits {
  readonly #clock: Clock;
  #endsAt = -Infinity;
  #overall = 0;
  #byAddress = new Map<string, number>();
  #byCredential = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  classify({ outcome, actor, remoteAddress = "" }: AuditEvent): DenialVerdict {
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
    // The number of remembered addresses is limited by the number of recorded denials.
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

function verdict(counted: number, max: number): DenialVerdict {
  if (counted > max) return "leave_out";
  return counted === max ? "record_as_last" : "record";
}
