import { mayReadOthers, secretPaths, type Rule } from "../config/sections/rule.ts";
import { secretsWithNamesOf } from "../config/sections/mounted-file.ts";
import type { RuleRecord } from "./state.ts";

/** The failed rules that a cycle tries although their wait is not over. */
export type RetryScope =
  | { readonly kind: "all" }
  | { readonly kind: "rule"; readonly name: string }
  /** Rules that may read one of these secrets, because those secrets have changed. */
  | { readonly kind: "secrets"; readonly paths: ReadonlySet<string> };

export const RETRY_ALL: RetryScope = { kind: "all" };
/** Every failed rule waits as long as its back-off says. */
export const RETRY_NONE: RetryScope = { kind: "secrets", paths: new Set() };

/** The scope, widened to the rules that may read a secret. */
export function withSecret(scope: RetryScope, path: string): RetryScope {
  if (scope.kind !== "secrets") return scope;
  return { kind: "secrets", paths: new Set([...scope.paths, path]) };
}

/** Whether a scope includes a rule. */
export function includes(scope: RetryScope, rule: Rule, record: RuleRecord): boolean {
  if (scope.kind === "all") return true;
  if (scope.kind === "rule") return scope.name === rule.name;
  const { paths } = scope;
  // A rule for the mount may have failed because a secret has its file's name.
  const { mount } = rule.target;
  const named = mount === undefined ? [] : secretsWithNamesOf(mount, "both");
  if (mount !== undefined && [...paths].some((path) => path.startsWith(`${mount}/`))) return true;
  const read = [...secretPaths(rule), ...Object.keys(record.inputs), ...named];
  // The other secrets of a template are not known before it has been rendered once.
  return read.some((path) => paths.has(path)) || (paths.size > 0 && mayReadOthers(rule));
}
