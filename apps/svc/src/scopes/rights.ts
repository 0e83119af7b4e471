import type { RequiredPermission } from "./required-permissions.ts";
import { RESOURCES, type Resource } from "./scopes.ts";

/**
 * Right for labels, milestones and assignees, which issues and pull requests share. Either of the two rights allows
 * them, as with the code host's own tokens (docs.github.com, "Permissions required for fine-grained personal access
 * tokens").
 */
export const ISSUES_OR_PULL_REQUESTS = "issues_or_pull_requests";

/** Every name that a rule may give a right: a resource, or the choice of two. Needs are named in this order. */
export const RIGHTS = [...RESOURCES, ISSUES_OR_PULL_REQUESTS] as const;
export type Right = Resource | typeof ISSUES_OR_PULL_REQUESTS;

export function permissionOf(right: Right, level: RequiredPermission["level"]): RequiredPermission {
  return right === ISSUES_OR_PULL_REQUESTS
    ? { resource: "issues", or: "pull_requests", level }
    : { resource: right, level };
}
