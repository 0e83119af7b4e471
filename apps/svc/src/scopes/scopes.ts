import { suggest } from "@devplat/base/suggest";
import type { Level } from "../storage/store.ts";

/** The closed list of resources (spec/svc.md section 4.1), in the terms of the code host's fine-grained permissions. */
export const RESOURCES = [
  "contents",
  "pull_requests",
  "issues",
  "statuses",
  "checks",
  "actions",
  "workflows",
  "metadata",
  "administration",
  "deployments",
  "environments",
  "packages",
  "pages",
  "security_events",
  "vulnerability_alerts",
  "discussions",
  "repository_hooks",
  "secrets",
  "secret_scanning_alerts",
  "projects",
  "members",
] as const;
export type Resource = (typeof RESOURCES)[number];

const ALIASES: ReadonlyMap<string, Resource> = new Map([["pulls", "pull_requests"]]);
/** Unknown names that a message may quote: letters, as every resource has. Anything else may be a token in the wrong place. */
const RESOURCE_FORM = /^[A-Za-z_-]{1,30}$/;
/** Stands for every resource; only where unrestricted tokens are allowed. */
export const EVERYTHING = "*";

export type Scopes = Readonly<Record<string, Level>>;

export interface ParsedScopes {
  /** In the order of {@link RESOURCES}; `metadata` is always there. */
  readonly scopes: Scopes;
  /** Faults, one sentence each. */
  readonly faults: readonly string[];
}

/**
 * Reads `<resource>:<level>[,<resource>:<level>…]`, or `*` for everything. A resource named twice gets the higher level.
 * A fault may quote a resource's name: it is not secret, and the caller must see which one is wrong.
 */
export function parseScopes(text: string): ParsedScopes {
  const levels = new Map<string, Level>([["metadata", "read"]]);
  const faults: string[] = [];
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === EVERYTHING) {
      levels.set(EVERYTHING, "write");
      continue;
    }
    const [name = "", level, ...rest] = entry.split(":");
    const resource = ALIASES.get(name) ?? RESOURCES.find((known) => known === name);
    if (entry === "" || level === undefined || rest.length > 0) {
      faults.push("expected <resource>:<level> entries, separated by commas");
    } else if (resource === undefined) {
      const meant = suggest(name, [...RESOURCES, ...ALIASES.keys()]);
      const shown = RESOURCE_FORM.test(name) ? ` "${name}"` : "";
      faults.push(`unknown resource${shown}${meant === undefined ? "" : `; did you mean ${meant}?`}`);
    } else if (level !== "read" && level !== "write") {
      faults.push(`the level of ${resource} must be read or write`);
    } else if (levels.get(resource) !== "write") levels.set(resource, level);
  }
  const order = [EVERYTHING, ...RESOURCES];
  const sorted = [...levels].toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b));
  return { scopes: Object.fromEntries(sorted), faults };
}

/** Whether the scopes allow the level on the resource; write implies read. */
export function allows(scopes: Scopes, resource: Resource, level: Level): boolean {
  const held = scopes[EVERYTHING] ?? scopes[resource];
  return held === "write" || held === level;
}

/** `issues:write` for each resource. */
export function scopeTexts(scopes: Readonly<Record<string, string>>): string[] {
  return Object.entries(scopes).map(([resource, level]) => `${resource}:${level}`);
}
