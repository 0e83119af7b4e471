import { backoffMs } from "@devplat/base";
import type { Rule } from "../config/sections/rule.ts";
import type { StateDocument } from "./state.ts";

/** Share of the poll interval that is random, so that the daemons of many hosts do not ask together. */
const POLL_JITTER = 0.1;
/** Waits between tries while the store cannot be used, in milliseconds. */
const OUTAGE_BACKOFF = { firstMs: 1000, maxMs: 60_000 } as const;
/** Maximum wait for a user who has just written a token to its file, in milliseconds. One look is a stat. */
const SIGN_IN_POLL_MS = 5000;
/** A shorter wait for the next try of a rule is not worth a cycle of its own, in milliseconds. */
const MIN_WAIT_MS = 50;

export interface ScheduleInputs {
  /** `sync.interval` in milliseconds. */
  readonly intervalMs: number;
  readonly authenticated: boolean;
  /** Number of cycles in a row that were not possible. */
  readonly outages: number;
  readonly rules: readonly Rule[];
  readonly document: StateDocument;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** A random number from 0 to 1. */
  readonly random: number;
}

/** Time until the next cycle, in milliseconds, if no event comes before it. */
export function waitBeforeCycle(inputs: ScheduleInputs): number {
  const { intervalMs, authenticated, outages, rules, document, now, random } = inputs;
  if (!authenticated) return Math.min(SIGN_IN_POLL_MS, intervalMs);
  if (outages > 0) return Math.min(intervalMs, backoffMs(outages, OUTAGE_BACKOFF));
  const retries = rules.flatMap((rule) => {
    const at = document.rules[rule.name]?.next_attempt;
    return at === null || at === undefined || !rule.enabled ? [] : [Date.parse(at) - now];
  });
  const poll = intervalMs * (1 + POLL_JITTER * (2 * random - 1));
  return Math.max(MIN_WAIT_MS, Math.min(poll, ...retries));
}
