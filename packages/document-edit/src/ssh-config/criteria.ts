import { wordsOf } from "./words.ts";

/** Result of comparing a block's criteria with a host. `maybe`: only ssh can decide, during the connection. */
export type Match = "yes" | "no" | "maybe";

/** A host, with its data at a point of the file. */
export interface Subject {
  /** The name given to ssh, or a pattern for all hosts that match it. */
  readonly name: string;
  /** The value of `HostName` so far, else the name. Undefined if it depends on a block that may match. */
  readonly hostName: string | undefined;
}

/** Compares the criteria of a block, as in `Host a *.b` or `Match host a`, with a host. */
export function matchCriteria(criteria: string, subject: Subject): Match {
  const [kind, ...words] = wordsOf(criteria);
  return kind === "Host" ? matchPatterns(words, subject.name) : matchConditions(criteria, subject);
}

/** Hosts of a block: its patterns that are not negated, or `*` if it names no host. */
export function patternsOf(criteria: string): readonly string[] {
  const [kind, ...words] = wordsOf(criteria);
  const patterns = kind === "Host" ? words : conditionsOf(criteria).flatMap(hostsOf);
  const positive = patterns.filter((pattern) => !pattern.startsWith("!"));
  return kind === "Match" && positive.length === 0 ? ["*"] : positive;
}

/** True for `Match all`, and for a `Host` block with the pattern `*` and any other patterns. */
export function matchesAll(criteria: string): boolean {
  const [kind, ...words] = wordsOf(criteria);
  if (kind === "Match") return words.length === 1 && words[0]?.toLowerCase() === "all";
  return words.some((word) => /^\*+$/.test(word));
}

function matchPatterns(patterns: readonly string[], name: string): Match {
  const negated = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => pattern.slice(1));
  if (!patterns.some((pattern) => !pattern.startsWith("!") && covers(pattern, name))) return "no";
  if (negated.some((pattern) => covers(pattern, name))) return "no";
  // A negated pattern may match some hosts of a pattern.
  return negated.length > 0 && /[*?]/.test(name) ? "maybe" : "yes";
}

interface Condition {
  readonly name: string;
  readonly isNegated: boolean;
  readonly value: string;
}

/** The conditions of a `Match` line. Each has a value, except `all`, `canonical` and `final`. */
function conditionsOf(criteria: string): readonly Condition[] {
  const words = wordsOf(criteria).slice(1);
  const conditions: Condition[] = [];
  for (let at = 0; at < words.length; at++) {
    const [, not = "", written = "", joined] = /^(!?)([A-Za-z]*)(?:=(.*))?$/s.exec(words[at] ?? "") ?? [];
    const name = written.toLowerCase();
    const value = joined ?? (WITHOUT_VALUE.has(name) ? "" : (words[++at] ?? ""));
    conditions.push({ name, isNegated: not !== "", value });
  }
  return conditions;
}

const WITHOUT_VALUE: ReadonlySet<string> = new Set(["all", "canonical", "final"]);

function hostsOf({ name, isNegated, value }: Condition): readonly string[] {
  return !isNegated && (name === "host" || name === "originalhost") ? value.split(",") : [];
}

function matchConditions(criteria: string, subject: Subject): Match {
  const results = conditionsOf(criteria).map((condition) => matchCondition(condition, subject));
  if (results.includes("no")) return "no";
  return results.includes("maybe") || results.length === 0 ? "maybe" : "yes";
}

function matchCondition({ name, isNegated, value }: Condition, subject: Subject): Match {
  let found: Match = "maybe";
  if (name === "all") found = "yes";
  const host = name === "host" ? subject.hostName : name === "originalhost" ? subject.name : undefined;
  // ssh ignores case here, but not in a `Host` line.
  if (host !== undefined) found = matchPatterns(value.toLowerCase().split(","), host.toLowerCase());
  if (!isNegated || found === "maybe") return found;
  // Some hosts of a pattern may match the other pattern.
  if (found === "no" && /[*?]/.test(subject.name)) return "maybe";
  return found === "yes" ? "no" : "yes";
}

/** True if a pattern matches a name, or every host of a pattern: `*` matches `?` and `*`, and `?` only matches `?`. */
function covers(pattern: string, name: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, "\\$&")
    .replace(/\*+/g, ".*")
    .replaceAll("?", "[^*]");
  return new RegExp(`^${source}$`, "s").test(name);
}
