import type { Need } from "../tokens/admission.ts";
import { RESOURCES, type Resource } from "../tokens/scopes.ts";

/**
 * Of labels, milestones and assignees, which issues and pull requests share: either right opens them, as with the code
 * host's own tokens (docs.github.com, "Permissions required for fine-grained personal access tokens").
 */
export const OF_EITHER = "issues|pull_requests";

/** What a rule names: a resource, or the choice of two. */
export type Right = Resource | typeof OF_EITHER;

/** Undefined: the text is none. */
export function rightNamed(text: string | undefined): Right | undefined {
  return text === OF_EITHER ? OF_EITHER : RESOURCES.find((each) => each === text);
}

export function needOf(right: Right, level: Need["level"]): Need {
  return right === OF_EITHER
    ? { resource: "issues", or: "pull_requests", level }
    : { resource: right, level };
}
