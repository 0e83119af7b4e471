import { backoffMs } from "@devplat/base";
import { publicMessage } from "../errors.ts";
import type { RuleStatus } from "../status.ts";
import type { Rule } from "../config/sections/rule.ts";
import type { RuleRecord, StateDocument } from "./state.ts";

/** Wait after the first failure of a rule, and the longest, in milliseconds: a typo costs little, an outage no load. */
const FIRST_RETRY_MS = 5000;
const MAX_RETRY_MS = 15 * 60_000;

/** Status of a rule that has not been tried yet. */
export const UNTRIED = {
  state: "pending",
  error: null,
  last_attempt: null,
  last_synced: null,
  next_attempt: null,
  consecutive_failures: 0,
  version: null,
} as const satisfies RuleStatus;

/** The record of a rule, made if there is none. */
export function recordOf(document: StateDocument, rule: Rule): RuleRecord {
  return (document.rules[rule.name] ??= {
    ...UNTRIED,
    inputs: {},
    config: "",
    environment: [],
    target: {
      path: rule.target.path,
      file: "",
      format: rule.target.format,
      dialect: rule.target.dialect ?? null,
      on_remove: rule.target.on_remove,
      allow_tracked: rule.target.allow_tracked,
    },
    managed: [],
    found: [],
    run_pending: false,
    last_run: null,
  });
}

/** The rule was tried and failed; it is tried again after a growing wait. */
export function noteFailure(record: RuleRecord, error: unknown, now: number): void {
  record.state = "failed";
  record.error = publicMessage(error);
  record.last_attempt = iso(now);
  record.consecutive_failures += 1;
  const wait = backoffMs(record.consecutive_failures, { firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS });
  record.next_attempt = iso(now + wait);
}

/** The file holds what it should. */
export function noteSuccess(record: RuleRecord, now: number): void {
  record.state = "ok";
  settle(record, now);
  record.last_synced = iso(now);
}

/** Nothing is stored under the rule's key, and the rule takes that for an answer. */
export function noteMissing(record: RuleRecord, message: string, now: number): void {
  record.state = "missing";
  settle(record, now);
  record.error = message;
  record.version = null;
  record.inputs = {};
}

export function notePaused(record: RuleRecord): void {
  record.state = "paused";
  record.next_attempt = null;
}

function settle(record: RuleRecord, now: number): void {
  record.error = null;
  record.last_attempt = iso(now);
  record.next_attempt = null;
  record.consecutive_failures = 0;
}

/**
 * Whether a failed rule has to wait before its next try. A time further away than any wait is of a clock that was wrong
 * then or is now.
 */
export function isWaiting(record: RuleRecord, now: number): boolean {
  if (record.next_attempt === null) return false;
  const left = Date.parse(record.next_attempt) - now;
  return left > 0 && left <= MAX_RETRY_MS;
}

/** What the surfaces show of a record. */
export function statusOf(record: RuleRecord): RuleStatus {
  const { state, error, last_attempt, last_synced, next_attempt, consecutive_failures, version } = record;
  return {
    state,
    error,
    last_attempt,
    last_synced,
    next_attempt,
    consecutive_failures,
    version,
    ...(record.last_run !== null && { run: record.last_run }),
  };
}

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
