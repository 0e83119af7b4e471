import type { RequiredPermissions, GitAction } from "./required-permissions.ts";

/**
 * The permissions that a git request needs.
 *
 * @param pushNeedsWorkflows `tokens.push_needs_workflows`: a push is not inspected, and may hold workflows
 */
export function gitPermissions(
  { owner, name, resource, level }: GitAction,
  pushNeedsWorkflows: boolean,
): RequiredPermissions {
  const needs: RequiredPermissions["needs"] =
    level === "write" && pushNeedsWorkflows
      ? [
          { resource, level },
          { resource: "workflows", level },
        ]
      : [{ resource, level }];
  return { needs, repositories: [`${owner}/${name}`] };
}
