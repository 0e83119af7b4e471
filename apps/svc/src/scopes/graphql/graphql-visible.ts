import type { Resource } from "../scopes.ts";

// Fields that may be selected on values without a rule, or of another repository; kept by hand. The rules for
// everything else are in the files below rules/.

/**
 * Edges from what every token may read, behind which names are free all the same: REST shows them in `GET /repos/{owner}/{repo}`,
 * too. Every other one needs the resource of what it leads to, even for a name, an id or a number of values.
 */
export const OPEN_EDGES: readonly string[] = ["Repository.defaultBranchRef"];

/** Resources needed to learn the existence or type of a value of an abstract type that no guarded field led to. */
export const ROOTED_ABSTRACT: Readonly<Record<string, readonly Resource[]>> = {
  GitObject: ["contents"],
  IssueOrPullRequest: ["issues", "pull_requests"],
};

/** Visible fields of a value of another repository, or of one that the token may not read: mostly names and addresses. */
export const REFERENCE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "*": ["__typename", "id", "number", "oid", "abbreviatedOid", "url", "resourcePath"],
  // The REST API shows these fields of a fork's parent with the fork. `gh` needs them before it opens an issue.
  Repository: [
    "name",
    "nameWithOwner",
    "owner",
    "description",
    "defaultBranchRef",
    "hasIssuesEnabled",
    "hasWikiEnabled",
    "isPrivate",
    "viewerPermission",
  ],
  // These fields are in addition to the checks and pull requests that the types belong to.
  BranchProtectionRule: ["requiresStrictStatusChecks", "requiredApprovingReviewCount"],
  Workflow: ["name"],
  WorkflowRun: ["event", "workflow"],
  Ref: ["name", "prefix"],
  Project: ["name"],
  ProjectV2: ["title"],
  ProjectColumn: ["name"],
  Topic: ["name"],
};

/** Visible fields of people, teams and organizations. */
export const PROFILE_FIELDS: readonly string[] = [
  "__typename",
  "avatarUrl",
  "combinedSlug",
  "databaseId",
  "id",
  "isViewer",
  "login",
  "name",
  "organization",
  "resourcePath",
  "slug",
  "url",
];
