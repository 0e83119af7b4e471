import type { Clock } from "@devplat/base";
import { addressKey } from "../http/address-key.ts";
import type { AuditEvent } from "./audit-event.ts";

/** Denials of one address that are written down in a window: a broken client shows, a flood does not fill the disk. */
const PER_ADDRESS = 60;
/** Denials of all unknown callers together in a window. */
const OVERALL = 1000;
const WINDOW_MS = 60_000;

/** What becomes of a denial: written down; written down as the last of this minute; or left to the access log. */
export type DenialVerdict = "record" | "record_as_last" | "leave_out";

/**
 * Bounds what strangers can have written down. Whoever has no good credential can be refused without end, and each
 * record takes room in the database; deeds and denials of known users are never left out.
 */
export class DenialBounds {
  readonly #clock: Clock;
  #endsAt = -Infinity;
  #overall = 0;
  #byAddress = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  judge({ outcome, actor, remoteAddress = "" }: AuditEvent): DenialVerdict {
    if (outcome !== "denied" || actor.login !== undefined) return "record";
    const now = this.#clock.monotonic();
    if (now >= this.#endsAt) {
      this.#endsAt = now + WINDOW_MS;
      this.#overall = 0;
      this.#byAddress = new Map();
    }
    // No more addresses are remembered than denials are written down.
    if (this.#overall >= OVERALL) return "leave_out";
    const key = addressKey(remoteAddress);
    const count = (this.#byAddress.get(key) ?? 0) + 1;
    if (count > PER_ADDRESS) return "leave_out";
    this.#byAddress.set(key, count);
    this.#overall++;
    return count === PER_ADDRESS || this.#overall === OVERALL ? "record_as_last" : "record";
  }
}
