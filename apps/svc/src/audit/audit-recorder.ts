import type { AuditRecord, AuditStore } from "./audit-store.ts";
import { randomUUIDv7 } from "node:crypto";
import type { Clock, Logger } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { AuditEvent, AuditTrail } from "./audit-event.ts";
import { auditText } from "./audit-text.ts";
import { DenialLimits } from "./denial-limits.ts";

/** Milliseconds between two writes. A killed process loses up to this much of the stored trail; the log is complete. */
const WRITE_INTERVAL_MS = 1000;
/** Records of one write. */
const BATCH = 500;
/** Maximum records that wait for a database that does not answer, about 500 bytes each. More are dropped and counted. */
const MAX_WAITING = 20_000;
/** Milliseconds between two warnings about a database that does not answer. */
const COMPLAIN_EVERY_MS = 60_000;

/** Added to the last denial that is recorded in a minute. */
const LAST_DENIAL = "further denials within the minute are in the access log only";

export interface AuditRecorderParts {
  readonly store: AuditStore;
  /** Gets one line per event immediately. */
  readonly auditLog: Logger;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Called with each recorded event. */
  readonly onRecorded: (event: AuditEvent) => void;
  /** Called with the number of lost records. */
  readonly onDropped: (count: number) => void;
}

/** Records events: a log line immediately, and rows in batches after the requests. */
export class AuditRecorder implements AuditTrail {
  readonly #parts: AuditRecorderParts;
  #waiting: AuditRecord[] = [];
  #dropped = 0;
  #complainedAt = -Infinity;
  readonly #writes = new Serializer();
  readonly #ids = new OrderedIds();
  readonly #denials: DenialLimits;

  constructor(parts: AuditRecorderParts) {
    this.#parts = parts;
    this.#denials = new DenialLimits(parts.clock);
  }

  record(event: AuditEvent): void {
    const verdict = this.#denials.classify(event);
    if (verdict === "leave_out") return;
    this.#parts.onRecorded(event);
    const last = verdict === "record_as_last";
    const record = this.#clean(last ? { ...event, details: { ...event.details, more: LAST_DENIAL } } : event);
    const { action, outcome, actor, target, remoteAddress, requestId, details, id } = record;
    this.#parts.auditLog.info(
      {
        audit_id: id,
        action,
        outcome,
        actor: actor.kind,
        login: actor.login,
        credential_id: actor.credentialId,
        target,
        remote_ip: remoteAddress,
        request_id: requestId,
        details,
      },
      action,
    );
    if (this.#waiting.length < MAX_WAITING) this.#waiting.push(record);
    else this.#lose(1);
  }

  /** Writes regularly until the signal fires, and then writes the rest. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#parts.clock.sleep(WRITE_INTERVAL_MS, signal).catch(() => undefined);
      await this.flush();
    }
    await this.flush();
    if (this.#waiting.length > 0) this.#lose(this.#waiting.splice(0).length);
  }

  /** Writes the waiting records. Never rejects; records that the database refuses wait for the next write. */
  async flush(): Promise<void> {
    // Batches are written one after the other, so that no record is written twice or out of order.
    await this.#writes.run(() => this.#write());
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, BATCH);
      try {
        // A batch whose response was lost is written again: the store takes each id once.
        await this.#parts.store.append(batch);
      } catch (error) {
        this.#complain(error);
        return;
      }
      this.#waiting.splice(0, batch.length);
    }
  }

  #lose(count: number): void {
    this.#dropped += count;
    this.#parts.onDropped(count);
    this.#complain(undefined);
  }

  #complain(error: unknown): void {
    const now = this.#parts.clock.monotonic();
    if (now - this.#complainedAt < COMPLAIN_EVERY_MS) return;
    this.#complainedAt = now;
    this.#parts.logger.warn(
      {
        ...(error === undefined ? {} : { err: error }),
        waiting: this.#waiting.length,
        dropped: this.#dropped,
      },
      "audit records could not be stored; the audit log lines have them",
    );
  }

  #clean(event: AuditEvent): AuditRecord {
    const { action, outcome, actor, target, remoteAddress, requestId, details } = event;
    const at = this.#parts.clock.now();
    return {
      id: this.#ids.next(at),
      at,
      action,
      outcome,
      actor: { kind: actor.kind, login: auditText(actor.login), credentialId: auditText(actor.credentialId) },
      target: auditText(target),
      remoteAddress: auditText(remoteAddress === "" ? undefined : remoteAddress),
      requestId: auditText(requestId),
      details:
        details === undefined
          ? undefined
          : Object.fromEntries(
              Object.entries(details).map(([name, value]) => [
                name,
                typeof value === "string" ? (auditText(value) ?? "") : value,
              ]),
            ),
    };
  }
}

/** UUIDv7 whose first random bits count within a millisecond (RFC 9562, section 6.2, method 1): events keep their order. */
class OrderedIds {
  #at = 0;
  #count = 0;

  next(at: number): string {
    this.#count = at === this.#at ? Math.min(this.#count + 1, 0xfff) : 0;
    this.#at = at;
    const id = randomUUIDv7();
    return `${id.slice(0, 15)}${this.#count.toString(16).padStart(3, "0")}${id.slice(18)}`;
  }
}
