import type { Resource } from "../scopes.ts";

// What may be selected on values that nothing guards, or that may belong to another repository; kept by hand. The rules for
// everything else are in the files below rules/.

/**
 * Edges from what every token may read, behind which names are free all the same: REST shows them in `GET /repos/{owner}/{repo}`,
 * too. Every other one needs the resource of what it leads to, even for a name, an id or a number of values.
 */
export const OPEN_EDGES: readonly string[] = ["Repository.defaultBranchRef"];

/** What it takes to learn which kind of value, or whether any, stands behind an abstract type that nothing guarded led to. */
export const ROOTED_ABSTRACT: Readonly<Record<string, readonly Resource[]>> = {
  GitObject: ["contents"],
  IssueOrPullRequest: ["issues", "pull_requests"],
};

/** What a value of another repository, or one beside what the token may read, may show: names, addresses and little more. */
export const REFERENCE_FIELDS: Readonly<Record<string, readonly string[]>> = {
  "*": ["__typename", "id", "number", "oid", "abbreviatedOid", "url", "resourcePath"],
  // As the REST API shows of a fork's parent to whoever reads the fork; `gh` asks for it before it opens an issue.
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
  // Beside the checks and pull requests that they belong to.
  BranchProtectionRule: ["requiresStrictStatusChecks", "requiredApprovingReviewCount"],
  Workflow: ["name"],
  WorkflowRun: ["event", "workflow"],
  Ref: ["name", "prefix"],
  Project: ["name"],
  ProjectV2: ["title"],
  ProjectColumn: ["name"],
  Topic: ["name"],
};

/** What is shown of people, teams and organizations. */
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
