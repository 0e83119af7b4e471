import { backoffMs } from "@devplat/base";
import type { LeafPath } from "@devplat/document-edit";
import type { Rule } from "../config/sections/rule.ts";
import { AgentError, publicMessage } from "../errors.ts";
import type { RuleStatus } from "../status.ts";
import type { RuleRecord, RunRecord } from "./state.ts";

/** First and longest wait after failures of a rule, in milliseconds: a typo costs little time, an outage little load. */
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

/** Keys of a file: those that the rule manages, and those of them that were there before the rule. */
export interface OwnedKeys {
  readonly managed: readonly LeafPath[];
  readonly found: readonly LeafPath[];
}

/** Facts about the content of a rule's file. */
export interface ContentFacts {
  /** Stamp of each secret that the content was made from, by path. */
  readonly inputs: Readonly<Record<string, string>>;
  /** Names of the environment variables that the template read. */
  readonly environment: readonly string[];
  /** Fingerprint of the rule and of these variables. */
  readonly config: string;
  /** Version of the secret, if there is just one. */
  readonly version: number | null;
}

/** Something that happened to a rule in a cycle. */
export type RuleEvent =
  | { readonly kind: "paused" }
  /** Secrets, configuration and file are as they were. */
  | { readonly kind: "unchanged" }
  /** Nothing is stored under the rule's key, and its `on_missing` allows that. */
  | { readonly kind: "missing"; readonly message: string }
  | { readonly kind: "failed"; readonly error: unknown }
  /** The file is about to change, so that the rule's command has to run. */
  | { readonly kind: "command_due" }
  /** The file holds the rendered content. */
  | {
      readonly kind: "written";
      readonly rule: Rule;
      /** Real path of the file. */
      readonly file: string;
      readonly content: ContentFacts;
      readonly keys: OwnedKeys;
    }
  /** The keys of a rule whose secret is missing were removed from the file, as far as its settings say so. */
  | { readonly kind: "cleaned"; readonly keys: OwnedKeys }
  | { readonly kind: "command_ended"; readonly run: RunRecord };

/** The record of a rule that has not been tried yet. */
export function newRecord(rule: Rule): RuleRecord {
  return {
    ...UNTRIED,
    inputs: {},
    config: "",
    environment: [],
    target: targetOf(rule, ""),
    managed: [],
    found: [],
    run_pending: false,
    last_run: null,
  };
}

/** The record of a rule after an event. Waits after failures have a random part. */
export function nextRecord(record: RuleRecord, event: RuleEvent, now: number): RuleRecord {
  switch (event.kind) {
    case "paused":
      return { ...record, state: "paused", next_attempt: null };
    case "unchanged":
      return { ...record, last_attempt: iso(now) };
    case "missing":
      return { ...settled(record, now), state: "missing", error: event.message, version: null, inputs: {} };
    case "failed":
      return failed(record, event.error, now);
    case "command_due":
      return { ...record, run_pending: true };
    case "cleaned":
      return { ...record, ...copied(event.keys) };
    case "written": {
      const { inputs, environment, config, version } = event.content;
      return {
        ...settled(record, now),
        state: "ok",
        last_synced: iso(now),
        version,
        inputs: { ...inputs },
        config,
        environment: [...environment],
        target: targetOf(event.rule, event.file),
        ...copied(event.keys),
      };
    }
    case "command_ended": {
      const failure = runFailure(event.run);
      const next = { ...record, last_run: event.run };
      if (failure === undefined) return { ...next, run_pending: false };
      return failed(next, new AgentError("run_failed", failure), now);
    }
    default:
      return event satisfies never;
  }
}

/**
 * Whether a failed rule has to wait before its next try. A time further away than the longest wait comes from a clock that
 * was wrong then or is wrong now.
 */
export function isWaiting(record: RuleRecord, now: number): boolean {
  if (record.next_attempt === null) return false;
  const left = Date.parse(record.next_attempt) - now;
  return left > 0 && left <= MAX_RETRY_MS;
}

/**
 * Whether rendering would give the content that was written last.
 * @param stamps of all secrets that the rule may read; undefined for one that is not stored
 * @param config fingerprint of the rule now
 */
export function hasSameInputs(
  record: RuleRecord,
  stamps: ReadonlyMap<string, string | undefined>,
  config: string,
): boolean {
  if (record.state !== "ok" || record.run_pending || record.config !== config) return false;
  return [...stamps].every(([path, stamp]) => stamp !== undefined && record.inputs[path] === stamp);
}

/** The status of a rule as the surfaces show it. */
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

/** The record without the traces of failures. */
function settled(record: RuleRecord, now: number): RuleRecord {
  return { ...record, error: null, last_attempt: iso(now), next_attempt: null, consecutive_failures: 0 };
}

function failed(record: RuleRecord, error: unknown, now: number): RuleRecord {
  const failures = record.consecutive_failures + 1;
  return {
    ...record,
    state: "failed",
    error: publicMessage(error),
    last_attempt: iso(now),
    next_attempt: iso(now + backoffMs(failures, { firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS })),
    consecutive_failures: failures,
  };
}

function targetOf({ target }: Rule, file: string): RuleRecord["target"] {
  const { path = "", format, dialect, on_remove, allow_tracked } = target;
  return { path, file, format, dialect: dialect ?? null, on_remove, allow_tracked };
}

function copied({ managed, found }: OwnedKeys): Pick<RuleRecord, "managed" | "found"> {
  return { managed: managed.map((leaf) => [...leaf]), found: found.map((leaf) => [...leaf]) };
}

/** Why a command counts as failed; undefined for success. */
function runFailure(run: RunRecord): string | undefined {
  if (run.timed_out) return "the command did not end within its time-out";
  if (run.exit_code === null) return "the command could not be started or was killed";
  return run.exit_code === 0 ? undefined : `the command ended with exit code ${run.exit_code}`;
}
