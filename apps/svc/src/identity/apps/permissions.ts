import type { Level } from "../../storage/store.ts";
import { EVERYTHING, type Scopes } from "../../scopes/scopes.ts";

/** Permissions of an installation, in the terms of the code host. */
export type Permissions = Readonly<Record<string, string>>;

/** Names of permissions at the code host that differ from the resources of this service. */
const NAMES: Readonly<Record<string, string>> = { projects: "repository_projects" };
const RANK = ["read", "write", "admin"];

/**
 * The permissions of an installation token, from an agent token's scopes; undefined: all permissions of the installation.
 */
export function permissionsFor(scopes: Scopes): Record<string, Level> | undefined {
  if (EVERYTHING in scopes) return undefined;
  const asked: Record<string, Level> = {};
  for (const [resource, level] of Object.entries(scopes)) {
    // The code host knows writing workflow files only; reading them is part of reading contents.
    if (resource === "workflows" && level === "read") continue;
    asked[NAMES[resource] ?? resource] = level;
  }
  return asked;
}

/** Requested permissions that are not granted, as `contents:write`. */
export function missingPermissions(asked: Permissions, granted: Permissions): string[] {
  return Object.entries(asked)
    .filter(([name, level]) => RANK.indexOf(granted[name] ?? "") < RANK.indexOf(level))
    .map(([name, level]) => `${name}:${level}`);
}
