import { backoffMs } from "@devplat/base";
import { publicMessage } from "../errors.ts";
import type { EnrolmentStatus } from "../status.ts";
import type { EnrolmentEngine } from "./engine.ts";

/** Waits after failures of what needs no user. */
const RETRY = { firstMs: 10_000, maxMs: 15 * 60_000 } as const;

type State = EnrolmentStatus["state"];

/**
 * State of one enrolment: `pending → running → complete | failed`, `failed → running | skipped`, `pending → skipped`,
 * `complete | skipped → pending`. A record is replaced, never changed.
 */
export interface EnrolmentRecord {
  readonly state: State;
  readonly error: string | null;
  /** The state in which the run began. It is the state again when the run is cancelled. */
  readonly before: State;
  /** The user wants it done again although a credential is stored. */
  readonly again: boolean;
  readonly failures: number;
  /** Earliest time of the next try, in milliseconds since the epoch. */
  readonly retryAt: number;
  /** When the stored credential is to be renewed, in milliseconds since the epoch. */
  readonly refreshAt: number | undefined;
}

/** Something that happened to an enrolment. */
export type EnrolmentEvent =
  /** Its engine was started: by the user, or because it does not need the user. */
  | { readonly kind: "started"; readonly byUser: boolean }
  | { readonly kind: "stored"; readonly refreshAt: number | undefined }
  | { readonly kind: "failed"; readonly error: unknown }
  | { readonly kind: "cancelled" }
  /** The user has skipped it, or wants it done again. */
  | { readonly kind: "skipped" }
  | { readonly kind: "reset" }
  /** The choices of the user were read. */
  | { readonly kind: "choices_read"; readonly skipped: boolean; readonly again: boolean }
  /** The store was asked whether it has the credential. */
  | { readonly kind: "looked_up"; readonly isStored: boolean }
  | { readonly kind: "refresh_planned"; readonly at: number | undefined }
  | { readonly kind: "refreshed"; readonly refreshAt: number | undefined }
  | { readonly kind: "refresh_failed"; readonly error: unknown };

export const NEW_RECORD: EnrolmentRecord = {
  state: "pending",
  error: null,
  before: "pending",
  again: false,
  failures: 0,
  retryAt: 0,
  refreshAt: undefined,
};

/** The record of an enrolment after an event. Waits after failures have a random part. */
export function nextRecord(record: EnrolmentRecord, event: EnrolmentEvent, now: number): EnrolmentRecord {
  switch (event.kind) {
    case "started": {
      // An engine that mirrors a secret runs again and again. That must not look as if something happened each time.
      const isSilent = !event.byUser && record.state === "complete";
      return { ...record, error: null, before: record.state, state: isSilent ? "complete" : "running" };
    }
    case "stored":
      return { ...record, ...SUCCESS, state: "complete", again: false, refreshAt: event.refreshAt };
    case "failed":
      return { ...failed(record, now), state: "failed", error: publicMessage(event.error) };
    case "cancelled":
      return { ...record, state: record.before };
    case "skipped":
      return { ...record, state: "skipped" };
    case "reset":
      return { ...record, state: "pending", again: true };
    case "choices_read":
      return { ...record, again: event.again, state: event.skipped ? "skipped" : record.state };
    case "looked_up":
      return { ...record, state: afterLookup(record, event.isStored) };
    case "refresh_planned":
      return { ...record, refreshAt: event.at };
    case "refreshed":
      return { ...record, ...SUCCESS, error: null, refreshAt: event.refreshAt };
    case "refresh_failed":
      // The credential may still be valid for the other half of its life.
      return { ...failed(record, now), error: `could not be renewed: ${publicMessage(event.error)}` };
    default:
      return event satisfies never;
  }
}

/** Whether an engine that does not need the user has to run now. */
export function isDue({ state, retryAt }: EnrolmentRecord, engine: EnrolmentEngine, now: number): boolean {
  if (engine.interactive || now < retryAt) return false;
  return engine.mirrors === true || state === "pending" || state === "failed";
}

/** Whether the stored credential has to be renewed now. */
export function isRefreshDue({ refreshAt, retryAt }: EnrolmentRecord, now: number): boolean {
  return refreshAt !== undefined && refreshAt <= now && retryAt <= now;
}

/** Time of the next action without the user, in milliseconds since the epoch; undefined if none is planned. */
export function nextActionAt(
  { state, refreshAt, retryAt }: EnrolmentRecord,
  { interactive }: EnrolmentEngine,
): number | undefined {
  const due = interactive ? refreshAt : state === "failed" ? retryAt : undefined;
  return due === undefined ? undefined : Math.max(due, retryAt);
}

const SUCCESS = { failures: 0, retryAt: 0 } as const;

function failed(record: EnrolmentRecord, now: number): EnrolmentRecord {
  const failures = record.failures + 1;
  return { ...record, failures, retryAt: now + backoffMs(failures, RETRY) };
}

function afterLookup({ state, again }: EnrolmentRecord, isStored: boolean): State {
  if (isStored && again) return state === "complete" ? "pending" : state;
  if (isStored) return state === "failed" ? "failed" : "complete";
  return state === "complete" || state === "skipped" ? "pending" : state;
}
