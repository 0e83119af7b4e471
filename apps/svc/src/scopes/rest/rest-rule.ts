import type { Level } from "../../storage/store.ts";
import type { RestAccess } from "./rest-table.ts";
import { permissionOf, type Right } from "../rights.ts";

export type RestMethod = "GET" | "PUT" | "POST" | "PATCH" | "DELETE";

/** The access of a rule: {@link RestAccess}, with rights whose level may depend on the method. */
export type AccessRule =
  | {
      readonly kind: "repository" | "every_repository";
      /** All of them are needed. */
      readonly rights: readonly Right[];
      /** Undefined: `read` for GET, `write` for every other method. */
      readonly level?: Level;
    }
  | { readonly kind: "issue_or_pull_request" }
  | Extract<RestAccess, { readonly kind: "search" | "open" | "refused" }>;

/** A rule for documented operations. In a list of rules, the first match for an operation counts. */
export interface RestRule {
  /** `writes`: all but GET. */
  readonly methods: RestMethod | "all" | "writes";
  /** A path template: `/repos/{owner}/{repo}/issues`. */
  readonly path: string;
  /** Whether the rule is for the path alone, without the paths below it. */
  readonly exact: boolean;
  readonly access: AccessRule;
}

// The operations of a rule: the path and everything below it.

export const all = ruleFor("all");
export const writes = ruleFor("writes");
export const get = ruleFor("GET");
export const put = ruleFor("PUT");
export const post = ruleFor("POST");

function ruleFor(methods: RestRule["methods"]) {
  return (path: string, access: AccessRule): RestRule => ({ methods, path, exact: false, access });
}

/** The rule for its path alone. */
export function exactly(rule: RestRule): RestRule {
  return { ...rule, exact: true };
}

/** Rules whose paths begin behind `/repos/{owner}/{repo}`. */
export function inRepository(...rules: readonly RestRule[]): RestRule[] {
  return rules.map((rule) => ({ ...rule, path: `/repos/{owner}/{repo}${rule.path}` }));
}

// The access of an operation.

/** Every one of the rights, for the repository in the path: at level read for GET, else write. */
export function needs(...rights: readonly Right[]): AccessRule {
  return { kind: "repository", rights };
}

/** All of the rights, at level read for every method. */
export function needsRead(...rights: readonly Right[]): AccessRule {
  return { kind: "repository", rights, level: "read" };
}

/** The right and a token for every repository: the operation concerns an account. */
export function needsForEveryRepository(right: Right): AccessRule {
  return { kind: "every_repository", rights: [right] };
}

/** `issues`, or `pull_requests` where the path's `{issue_number}` is the number of a pull request. */
export const NEEDS_ISSUE_OR_PULL_REQUEST: AccessRule = { kind: "issue_or_pull_request" };

/** No right: the response has nothing of any repository. */
export const OPEN: AccessRule = { kind: "open" };

/** The repositories of the query, which must name them. */
export function search(what: Extract<RestAccess, { readonly kind: "search" }>["what"]): AccessRule {
  return { kind: "search", what };
}

/** Not for limited tokens. @param reason ends a sentence for the caller: "it reaches other repositories" */
export function refused(reason: string): AccessRule {
  return { kind: "refused", reason };
}

/** The access of an operation by the first rule for it; undefined: no rule is for it. */
export function accessOf(
  rules: readonly RestRule[],
  method: string,
  template: string,
): RestAccess | undefined {
  const rule = rules.find(
    ({ methods, path, exact }) =>
      (methods === "all" || methods === method || (methods === "writes" && method !== "GET")) &&
      (template === path || (!exact && template.startsWith(`${path}/`))),
  );
  if (rule === undefined) return undefined;
  const { access } = rule;
  const level = method === "GET" ? "read" : "write";
  switch (access.kind) {
    case "repository":
    case "every_repository": {
      const [first, ...more] = access.rights.map((right) => permissionOf(right, access.level ?? level));
      if (first === undefined) throw new TypeError(`the rule for ${method} ${rule.path} names no right`);
      return { kind: access.kind, needs: [first, ...more] };
    }
    case "issue_or_pull_request":
      return { kind: access.kind, level };
    default:
      return access;
  }
}
