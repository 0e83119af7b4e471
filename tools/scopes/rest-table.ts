import { accessOf, type RestRule } from "../../apps/svc/src/scopes/rest/rest-rule.ts";
import type { RestAccess } from "../../apps/svc/src/scopes/rest/rest-table.ts";

/** A documented operation of a REST API. */
export interface RestOperation {
  readonly method: string;
  /** Path template of the API's description: `/repos/{owner}/{repo}/issues`. */
  readonly template: string;
}

/** Permissions that each operation needs, by path template and method. @throws TypeError for an operation that no rule is for */
export function restTable(
  operations: readonly RestOperation[],
  rules: readonly RestRule[],
): Record<string, Record<string, RestAccess>> {
  const table: Record<string, Record<string, RestAccess>> = {};
  for (const { method, template } of operations) {
    const access = accessOf(rules, method, template);
    if (access === undefined) throw new TypeError(`no rule is for ${method} ${template}`);
    (table[template] ??= {})[method] = access;
  }
  return table;
}
