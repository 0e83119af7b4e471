import type { Demand, GitAction } from "./required-permissions.ts";

/**
 * What a git request needs of a token.
 *
 * @param pushNeedsWorkflows `tokens.push_needs_workflows`: a push streams by, and may hold workflows
 */
export function gitDemand({ owner, name, resource, level }: GitAction, pushNeedsWorkflows: boolean): Demand {
  const needs: Demand["needs"] =
    level === "write" && pushNeedsWorkflows
      ? [
          { resource, level },
          { resource: "workflows", level },
        ]
      : [{ resource, level }];
  return { needs, repositories: [`${owner}/${name}`] };
}
