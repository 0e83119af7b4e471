import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { TokenLimits } from "../tokens/admission.ts";
import { demandFault } from "../tokens/permit.ts";
import { parseScopes } from "../tokens/scopes.ts";
import { parseApiPath } from "./api-path.ts";
import { readGraphqlRequest } from "./graphql-request.ts";
import { GraphqlJudge } from "./graphql-judge.ts";
import type { IdResolver, Judgement, NodeFacts } from "./judgement.ts";
import { restBodyFault } from "./rest-body.ts";
import { RestJudge } from "./rest-judge.ts";
import { issueKindsOfSearch, repositoriesOfSearch } from "./search-query.ts";

const rest = new RestJudge();
const graphql = new GraphqlJudge();
const NODES: Readonly<Record<string, NodeFacts>> = {
  R_mine: { type: "Repository", repository: "acme/widgets" },
  I_mine: { type: "Issue", repository: "acme/widgets" },
  PR_mine: { type: "PullRequest", repository: "acme/widgets" },
  IC_issue: { type: "IssueComment", repository: "acme/widgets" },
  IC_pull: { type: "IssueComment", repository: "acme/widgets", onPullRequest: true },
  I_other: { type: "Issue", repository: "acme/secret" },
  U_bob: { type: "User", repository: undefined },
  P_board: { type: "ProjectV2", repository: undefined },
};
const resolver: IdResolver = {
  repositoryById: async (id) => ({ "1": "acme/widgets", "2": "acme/secret" })[id],
  isPullRequest: async (_, number) => number === "7",
  nodes: async (ids) =>
    new Map(ids.flatMap((id) => (NODES[id] === undefined ? [] : [[id, NODES[id]] as const]))),
};

function limits(scopes: string, repositories: readonly string[] = ["acme/widgets"]): TokenLimits {
  return { repositories, scopes: parseScopes(scopes).scopes };
}

/** `allowed`, or why not. */
function verdict(judged: Judgement, held: TokenLimits): string {
  return judged.kind === "refused" ? judged.message : (demandFault(held, judged.demand) ?? "allowed");
}

async function ofRest(held: TokenLimits, method: string, target: string): Promise<string> {
  const [path = "", query = ""] = target.split("?");
  const parsed = parseApiPath(path);
  if (typeof parsed === "string") return parsed;
  return verdict(
    await rest.judge({ method, path: parsed, query: new URLSearchParams(query) }, held, resolver),
    held,
  );
}

async function ofGraphql(
  held: TokenLimits,
  query: string,
  variables: Record<string, unknown> = {},
  operationName?: string,
): Promise<string> {
  const request = readGraphqlRequest({ query, variables, operationName });
  if (typeof request === "string") return request;
  return verdict(await graphql.judge(request, held, resolver), held);
}

describe("REST scopes", () => {
  const allowed: [scopes: string, method: string, target: string][] = [
    ["metadata:read", "GET", "/repos/acme/widgets"],
    ["metadata:read", "HEAD", "/repos/ACME/Widgets"],
    ["metadata:read", "GET", "/repositories/1"],
    ["issues:read", "GET", "/repositories/1/issues?page=2"],
    ["issues:write", "POST", "/repos/acme/widgets/issues"],
    ["issues:write", "POST", "/repos/acme/widgets/issues/7/comments"],
    ["pull_requests:write", "POST", "/repos/acme/widgets/issues/7/comments"],
    ["pull_requests:write,contents:write", "PUT", "/repos/acme/widgets/pulls/7/merge"],
    ["contents:read", "GET", "/repos/acme/widgets/contents/docs%2Fguide.md"],
    ["contents:read", "GET", "/repos/acme/widgets/contents/docs/guide.md"],
    ["contents:read", "GET", "/repos/acme/widgets/git/ref/heads/main"],
    ["contents:read", "GET", "/repos/acme/widgets/contents/a:b.txt?ref=main"],
    ["pull_requests:read", "GET", "/repos/acme/widgets/pulls?head=acme:topic"],
    ["contents:read", "GET", "/repos/acme/widgets/branches/feature%2Fx"],
    ["contents:read", "GET", "/repos/acme/widgets/compare/main...acme:topic"],
    ["contents:write,workflows:write", "PUT", "/repos/acme/widgets/contents/.github/workflows/ci.yml"],
    ["contents:write,workflows:write", "POST", "/repos/acme/widgets/merge-upstream"],
    ["contents:write", "PUT", "/repos/acme/widgets/contents/.github/CODEOWNERS"],
    ["issues:read,pull_requests:read", "GET", "/search/issues?q=repo%3Aacme%2Fwidgets+bug"],
    ["issues:read", "GET", "/search/issues?q=is%3Aissue+repo%3Aacme%2Fwidgets"],
    ["issues:read", "GET", '/search/issues?q=is:issue+label:"good+first","bug"+repo:"acme/widgets"'],
    ["contents:read", "GET", '/search/code?q="some (text)"+repo:acme/widgets'],
    ["issues:read", "GET", "/search/labels?repository_id=1&q=bug"],
    ["metadata:read", "GET", "/user"],
    ["metadata:read", "GET", "/rate_limit"],
    ["metadata:read", "GET", "/"],
  ];
  for (const [scopes, method, target] of allowed) {
    it(`${scopes} allows ${method} ${target}`, async () => {
      assert.equal(await ofRest(limits(scopes), method, target), "allowed");
    });
  }

  const ALL =
    "contents:write,issues:write,pull_requests:write,administration:write,actions:write,checks:write";
  const refused: [scopes: string, method: string, target: string, why: RegExp][] = [
    [ALL, "GET", "/repos/acme/secret", /not for acme\/secret/],
    [ALL, "GET", "/repositories/2", /belongs to no repository of the token/],
    [ALL, "GET", "/repositories/3", /belongs to no repository of the token/],
    [ALL, "GET", "/repositories/1x", /belongs to no repository/],
    [ALL, "GET", "/repos/acme/widgets/forks", /other repositories/],
    [ALL, "GET", "/repos/acme/widgets/issues/1/timeline", /other repositories/],
    [ALL, "GET", "/repos/acme/widgets/issues/1/sub_issues", /other repositories/],
    [ALL, "GET", "/repos/acme/widgets/compare/main...mallory:topic", /another repository/],
    [ALL, "GET", "/repos/acme/widgets/compare/main...acme:secret:topic", /another repository/],
    [ALL, "GET", "/repos/acme/widgets/commits/mallory:main", /colon/],
    [ALL, "GET", "/repos/acme/widgets/commits/mallory%3Amain/status", /colon/],
    [ALL, "GET", "/repos/acme/widgets/contents/x?ref=mallory:main", /colon/],
    [ALL, "GET", "/repos/acme/widgets/commits?sha=main&sha=mallory:main", /colon/],
    [ALL, "GET", "/repos/acme/widgets/zipball/mallory:main", /colon/],
    [ALL, "GET", "/repos/acme/widgets/git/trees/mallory:main", /colon/],
    [ALL, "GET", "/repos/acme/widgets/unknown", /documented API/],
    [ALL, "PATCH", "/repos/acme/widgets/issues", /documented API/],
    [ALL, "BREW", "/repos/acme/widgets", /documented API/],
    [ALL, "GET", "/repos/acme/widgets/", /empty segment/],
    [ALL, "GET", "/repos//acme/widgets", /empty segment/],
    [ALL, "GET", "/repos/acme/widgets/../secret", /dot segment/],
    [ALL, "GET", "/repos/acme/widgets/%2e%2e/secret", /dot segment/],
    [ALL, "GET", "/repos/acme/widgets/contents/..%2f..%2fsecret", /dot segment/],
    [ALL, "GET", "/repos/acme/widgets/contents/%252e%252e", /encoded twice/],
    [ALL, "GET", "/repos/acme%2fwidgets", /documented API|such a name/],
    [ALL, "GET", "/repos/acme/widgets%00", /not allowed/],
    [ALL, "GET", "/repos/acme/widgets.git", /not for acme\/widgets.git/],
    [ALL, "GET", "/repos/\u212acme/widgets", /such a name|not for/],
    [ALL, "GET", "/Repos/acme/widgets", /documented API/],
    [ALL, "GET", "/orgs/acme/repos", /single repositories/],
    [ALL, "GET", "/user/repos", /single repositories/],
    [ALL, "GET", "/user/emails", /belongs to an account/],
    [ALL, "GET", "/gists", /gists/],
    [ALL, "GET", "/notifications", /account/],
    [ALL, "GET", "/search/issues?q=bug", /no repo: qualifier/],
    [ALL, "GET", "/search/issues?q=repo:acme/widgets&q=repo:acme/secret", /not one parameter q/],
    [ALL, "GET", "/search/issues?q=repo:acme/widgets+OR+repo:acme/secret", /boolean operator/],
    [ALL, "GET", "/search/issues?q=repo:acme/widgets+repo:acme/secret", /not for acme\/secret/],
    [ALL, "GET", "/search/code?q=repo:acme/widgets+org:acme", /qualifier org/],
    [ALL, "GET", '/search/code?q="repo:acme/widgets"', /no repo: qualifier/],
    [ALL, "GET", "/search/code?q=repo:acme/widgets&q[]=x", /nested parameter/],
    [ALL, "GET", "/search/code?q=x%C2%A0repo:acme/widgets", /no plain space/],
    [ALL, "GET", "/search/code?q=x%09repo:acme/widgets", /no plain space/],
    [ALL, "GET", "/search/code?q=%22x%5C%22+repo:acme/widgets+%22y%22", /backslash/],
    [ALL, "GET", "/search/code?q=%22x%22user:mallory+repo:acme/widgets", /quotation mark within a word/],
    [ALL, "GET", "/search/code?q=u%C5%BFer:mallory+repo:acme/widgets", /not ASCII/],
    [ALL, "GET", "/search/code?q=repo:acme/wid%22gets%22", /quotation mark within a word|single repository/],
    ["issues:read", "GET", '/search/issues?q=repo:acme/widgets+-label:"a+is:issue+b"', /pull_requests:read/],
    [ALL, "GET", "/search/repositories?q=repo:acme/widgets", /every repository/],
    [ALL, "GET", "/search/labels?repository_id=2&q=x", /belongs to no repository/],
    ["contents:read", "PUT", "/repos/acme/widgets/contents/a", /lacks the scope contents:write/],
    ["contents:write", "PUT", "/repos/acme/widgets/contents/.github/workflows/ci.yml", /workflows:write/],
    ["contents:write", "PUT", "/repos/acme/widgets/contents/.github%2Fworkflows%2Fci.yml", /workflows:write/],
    ["contents:read", "GET", "/repos/acme/widgets/commits/main%2Fstatus", /statuses:read/],
    ["pull_requests:write", "POST", "/repos/acme/widgets/issues/1/comments", /lacks the scope issues:write/],
    ["pull_requests:write", "PUT", "/repos/acme/widgets/pulls/7/merge", /contents:write/],
    ["metadata:read", "GET", "/repos/acme/widgets/issues", /issues:read/],
    // Events show texts of issues, messages of commits and names of branches.
    [
      "metadata:read",
      "GET",
      "/repos/acme/widgets/events",
      /contents:read and issues:read and pull_requests:read/,
    ],
    ["contents:write", "POST", "/repos/acme/widgets/keys", /administration:write/],
    ["actions:write", "PUT", "/repos/acme/widgets/actions/secrets/X", /secrets:write/],
  ];
  for (const [scopes, method, target, why] of refused) {
    it(`${method} ${target} is refused with ${scopes}`, async () => {
      assert.match(await ofRest(limits(scopes), method, target), why);
    });
  }

  it("an account's routes open to a token for every repository that holds the right", async () => {
    assert.equal(await ofRest(limits("members:read", ["*"]), "GET", "/orgs/acme/members"), "allowed");
    assert.match(await ofRest(limits("members:read"), "GET", "/orgs/acme/members"), /single repositories/);
  });

  it("a pull request from another repository's branch is refused, in either field", () => {
    const held = limits("pull_requests:write");
    const fault = (body: unknown): string | undefined => restBodyFault("acme/widgets", body, held);
    assert.equal(fault({ head: "topic", base: "main" }), undefined);
    assert.equal(fault({ head: "Acme:topic", base: "main" }), undefined);
    assert.match(fault({ head: "mallory:topic" }) ?? "", /another/);
    assert.match(fault({ head: "topic", Head: "mallory:topic" }) ?? "", /lower case/);
    assert.match(fault({ head: "topic", head_repo: "secret" }) ?? "", /head_repo/);
    assert.match(fault([]) ?? "", /object/);
  });

  it("no path opens another repository than the one that its segments name", async () => {
    const piece = fc.constantFrom(
      "repos",
      "acme",
      "widgets",
      "secret",
      "..",
      ".",
      "",
      "%2e%2e",
      "%2f",
      "issues",
      "1",
      "contents",
      "repositories",
      "2",
    );
    const held = limits(ALL);
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
        const target = `/${pieces.join("/")}`;
        if ((await ofRest(held, "GET", target)) !== "allowed") return;
        const open = target === "/" || /^\/(?:repos\/acme\/widgets|repositories\/1)(?:\/|$)/.test(target);
        assert.ok(open && !/secret/.test(target.replace(/\/contents\/.*/, "")), target);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("searches", () => {
  it("only repo: qualifiers outside of quotation marks count, and nothing may widen them", () => {
    assert.deepEqual(repositoriesOfSearch("repo:a/b is:open"), ["a/b"]);
    assert.deepEqual(repositoriesOfSearch('REPO:"a/b" -repo:c/d'), ["a/b"]);
    for (const bad of [
      "",
      "x",
      '"repo:a/b"',
      "repo:a",
      "repo:a/*",
      "(repo:a/b)",
      "repo:a/b or x",
      "user:a repo:a/b",
      'repo:a/b "x',
    ]) {
      assert.equal(typeof repositoriesOfSearch(bad), "string", bad);
    }
  });
});

describe("kinds of a search for issues", () => {
  it("both, unless it says which; a review is a pull request's, and its absence nobody's", () => {
    const both = ["issues", "pull_requests"];
    assert.deepEqual(issueKindsOfSearch("repo:a/b bug"), both);
    assert.deepEqual(issueKindsOfSearch("repo:a/b is:issue"), ["issues"]);
    assert.deepEqual(issueKindsOfSearch("repo:a/b IS:PR"), ["pull_requests"]);
    assert.deepEqual(issueKindsOfSearch("repo:a/b is:pr is:issue"), both);
    assert.deepEqual(issueKindsOfSearch("repo:a/b review-requested:@me"), ["pull_requests"]);
    assert.deepEqual(issueKindsOfSearch("repo:a/b -review-requested:@me"), both);
    assert.deepEqual(issueKindsOfSearch(`repo:a/b "is:pr"`), both);
  });
});

const OWN = `repository(owner: "acme", name: "widgets")`;

describe("GraphQL scopes", () => {
  const allowed: [scopes: string, query: string, variables?: Record<string, unknown>][] = [
    [
      "metadata:read",
      `{ ${OWN} { id name defaultBranchRef { name } parent { id name owner { id login } } } }`,
    ],
    [
      "issues:read",
      `query Q($o: String!, $n: String = "widgets") { repository(owner: $o, name: $n) { issues(first: 1) { nodes { title author { login } labels(first: 3) { nodes { name } } } totalCount } } }`,
      { o: "ACME" },
    ],
    ["metadata:read", `{ ${OWN} { ...R } } fragment R on Repository { a: name b: nameWithOwner }`],
    ["issues:read", `{ node(id: "I_mine") { ... on Issue { title repository { name } } } }`],
    [
      "issues:read,pull_requests:read",
      `{ nodes(ids: ["I_mine", "PR_mine"]) { __typename ... on Issue { title } ... on PullRequest { title } } }`,
    ],
    [
      "issues:read",
      `{ search(query: "repo:acme/widgets is:issue", type: ISSUE, first: 5) { issueCount nodes { ... on Issue { title } } } }`,
    ],
    ["metadata:read", `{ viewer { login id } rateLimit { remaining } __typename }`],
    ["metadata:read", `{ __schema { types { name } } __type(name: "Issue") { fields { name } } }`],
    ["metadata:read", `{ user(login: "acme") { id login repository(name: "widgets") { id } } }`],
    [
      "pull_requests:read",
      `{ ${OWN} { pullRequest(number: 1) { title headRepository { id name } headRepositoryOwner { id login ... on User { name } } mergeCommit { oid } closingIssuesReferences(first: 5) { nodes { number url } } } } }`,
    ],
    [
      "issues:write",
      `mutation($i: CreateIssueInput!) { createIssue(input: $i) { issue { id url } } }`,
      { i: { repositoryId: "R_mine", title: "x", assigneeIds: ["U_bob"] } },
    ],
    [
      "pull_requests:write",
      `mutation { addComment(input: { subjectId: "PR_mine", body: "x" }) { commentEdge { node { url } } } }`,
    ],
    [
      "pull_requests:write",
      `mutation { updateIssueComment(input: { id: "IC_pull", body: "x" }) { issueComment { url } } }`,
    ],
    [
      "contents:write",
      `mutation($i: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $i) { commit { oid } } }`,
      {
        i: {
          branch: { repositoryNameWithOwner: "acme/widgets", branchName: "main" },
          message: { headline: "x" },
          expectedHeadOid: "0",
          fileChanges: {},
        },
      },
    ],
  ];
  for (const [scopes, query, variables] of allowed) {
    it(`${scopes} allows ${query}`, async () => {
      assert.equal(await ofGraphql(limits(scopes), query, variables), "allowed");
    });
  }

  // What REST asks for the same: neither texts nor names, ids, numbers, and whether something is there at all.
  const guarded: [fields: string, needed: string][] = [
    ["labels(first: 9) { nodes { name description } }", "issues:read"],
    ["labels(first: 9) { totalCount }", "issues:read"],
    ["labels(first: 9) { pageInfo { endCursor } }", "issues:read"],
    ["labels(first: 9) { __typename }", "issues:read"],
    ['label(name: "secret") { id }', "issues:read"],
    ['label(name: "secret") { __typename }', "issues:read"],
    ["milestones(first: 9) { edges { node { title } } }", "issues:read"],
    ["milestones(first: 9) { edges { cursor } }", "issues:read"],
    ["milestone(number: 1) { url }", "issues:read"],
    ["issues(first: 9) { nodes { number url } }", "issues:read"],
    ["issue(number: 1) { number }", "issues:read"],
    ["contactLinks { about }", "issues:read"],
    ["pullRequests(first: 9) { nodes { number } }", "pull_requests:read"],
    ["pullRequest(number: 1) { id }", "pull_requests:read"],
    ["issueOrPullRequest(number: 1) { __typename }", "issues:read,pull_requests:read"],
    ['refs(refPrefix: "refs/heads/", first: 9) { nodes { name prefix } }', "contents:read"],
    ['refs(refPrefix: "refs/heads/", first: 9) { pageInfo { endCursor } }', "contents:read"],
    ['ref(qualifiedName: "refs/heads/secret") { name }', "contents:read"],
    ["defaultBranchRef { target { oid } }", "contents:read"],
    ['object(expression: "main:secret.txt") { oid }', "contents:read"],
    ['object(expression: "main:secret.txt") { __typename }', "contents:read"],
    ["latestRelease { url }", "contents:read"],
    ['release(tagName: "secret") { id }', "contents:read"],
    ["contributingGuidelines { body }", "contents:read"],
    ["projectsV2(first: 9) { nodes { title } }", "projects:read"],
    ["deployments(first: 9) { nodes { id } }", "deployments:read"],
    ["vulnerabilityAlerts(first: 9) { nodes { number } }", "vulnerability_alerts:read"],
    ["...F", "issues:read"],
  ];
  const F =
    "fragment F on Repository { ...G } fragment G on Repository { all: labels(first: 1) { nodes { id } } }";
  for (const [fields, needed] of guarded) {
    it(`metadata:read does not show ${fields} of a repository, ${needed} does`, async () => {
      const query = `{ ${OWN} { ${fields} } } ${fields === "...F" ? F : ""}`;
      assert.match(await ofGraphql(limits("metadata:read"), query), /does not allow|lacks|needs|scope/);
      assert.equal(await ofGraphql(limits(needed), query), "allowed");
    });
  }

  it("a repository that a permitted value leads to is no way around what guards its labels", async () => {
    const query = `{ ${OWN} { pullRequest(number: 1) { labels(first: 1) { nodes { name } } repository { labels(first: 1) { nodes { name } } } } } }`;
    assert.notEqual(await ofGraphql(limits("pull_requests:read"), query), "allowed");
    assert.equal(await ofGraphql(limits("pull_requests:read,issues:read"), query), "allowed");
  });

  it("an id and a search for a repository tell nothing beyond the token's scopes", async () => {
    const held = limits("metadata:read");
    for (const query of [
      `{ node(id: "I_mine") { __typename } }`,
      `{ node(id: "I_mine") { id } }`,
      `{ nodes(ids: ["PR_mine"]) { ... on PullRequest { url } } }`,
      `{ search(query: "repo:acme/widgets secret in:readme", type: REPOSITORY, first: 1) { repositoryCount } }`,
    ]) {
      assert.notEqual(await ofGraphql(held, query), "allowed", query);
    }
  });

  const ALL = limits(
    "contents:write,issues:write,pull_requests:write,administration:write,discussions:write,projects:write,checks:read,statuses:read",
  );
  const refused: [query: string, why: RegExp, variables?: Record<string, unknown>][] = [
    [`{ repository(owner: "acme", name: "secret") { name } }`, /not for acme\/secret/],
    [
      `{ ok: ${OWN} { name } other: repository(owner: "acme", name: "secret") { name } }`,
      /not for acme\/secret/,
    ],
    [
      `query($n: String!) { repository(owner: "acme", name: $n) { name } }`,
      /not for acme\/secret/,
      { n: "secret" },
    ],
    [
      `query($n: String! = "secret") { repository(owner: "acme", name: $n) { name } }`,
      /not for acme\/secret/,
    ],
    [`query($n: String!) { repository(owner: "acme", name: $n) { name } }`, /as texts/],
    [`{ repository(owner: "acme", owner: "x", name: "widgets") { name } }`, /twice/],
    [`{ ${OWN} { parent { diskUsage } } }`, /Repository.diskUsage/],
    [`{ ${OWN} { forks(first: 9) { nodes { issues { totalCount } } } } }`, /Repository.forks/],
    [`{ ${OWN} { owner { repositories(first: 9) { nodes { name } } } } }`, /RepositoryOwner.repositories/],
    [
      `{ ${OWN} { owner { ... on User { repositories(first: 9) { nodes { name } } } } } }`,
      /User.repositories/,
    ],
    [
      `{ ${OWN} { owner { ... on Organization { repository(name: "secret") { name } } } } }`,
      /Organization.repository/,
    ],
    [`{ ${OWN} { issue(number: 1) { author { ... on User { email } } } } }`, /User.email/],
    [`{ ${OWN} { issue(number: 1) { parent { url } } } }`, /Issue.parent/],
    [`{ ${OWN} { issue(number: 1) { subIssues(first: 9) { nodes { url } } } } }`, /Issue.subIssues/],
    [`{ ${OWN} { issue(number: 1) { trackedInIssues(first: 9) { nodes { url } } } } }`, /trackedInIssues/],
    [
      `{ ${OWN} { repositoryTopics(first: 9) { nodes { topic { repositories(first: 9) { nodes { nameWithOwner } } } } } } }`,
      /Topic.repositories/,
    ],
    [`{ ${OWN} { hasVulnerabilityAlertsEnabled } }`, /hasVulnerabilityAlertsEnabled/],
    ...["ReferencedEvent { commitRepository { name } }", "TransferredEvent { fromRepository { name } }"].map(
      (event): [string, RegExp] => [
        `{ ${OWN} { issue(number: 1) { timelineItems(first: 9) { nodes { ... on ${event} } } } } }`,
        /Event.(?:commitRepository|fromRepository)/,
      ],
    ),
    [
      `{ ${OWN} { pullRequest(number: 1) { closingIssuesReferences(first: 9) { nodes { title } } } } }`,
      /Issue.title/,
    ],
    [
      `{ ${OWN} { issue(number: 1) { timelineItems(first: 9) { nodes { ... on CrossReferencedEvent { source { ... on Issue { url } } } } } } } }`,
      /CrossReferencedEvent.source/,
    ],
    [
      `{ ${OWN} { pullRequest(number: 1) { headRepository { object(expression: "main") { id } } } } }`,
      /Repository.object/,
    ],
    [`{ ${OWN} { pullRequest(number: 1) { headRef { target { oid } } } } }`, /Ref.target/],
    [`{ ${OWN} { ref(qualifiedName: "main") { compare(headRef: "mallory:main") { aheadBy } } } }`, /compare/],
    [`{ ${OWN} { tempCloneToken } }`, /tempCloneToken/],
    [`{ viewer { repositories(first: 9) { nodes { name } } } }`, /User.repositories/],
    [
      `{ viewer { ...V } } fragment V on User { organizations(first: 1) { nodes { login } } }`,
      /User.organizations/,
    ],
    [`{ user(login: "acme") { repository(name: "secret") { name } } }`, /not for acme\/secret/],
    [`{ user(login: "acme") { email } }`, /email/],
    [
      `{ organization(login: "acme") { ...O } } fragment O on Organization { membersWithRole(first: 1) { totalCount } }`,
      /membersWithRole/,
    ],
    [`{ node(id: "I_other") { ... on Issue { title } } }`, /no repository of the token/],
    [`{ node(id: "I_gone") { ... on Issue { title } } }`, /no repository of the token/],
    [`{ node(id: "P_board") { ... on ProjectV2 { title } } }`, /no repository of the token/],
    [`{ nodes(ids: ["I_mine", "I_other"]) { id } }`, /no repository of the token/],
    [`query($id: ID!) { node(id: $id) { id } }`, /id is no text/, { id: 5 }],
    [
      `query($n: String = "secret", $n: String = "widgets") { repository(owner: "acme", name: $n) { name } }`,
      /not valid GraphQL/,
    ],
    [
      `{ repository(owner: "acme", name: "widgets") { issue(number: 1) { timelineItems(first: 1) { nodes { ... on ConnectedEvent { source { ... on Issue { title } } } } } } } }`,
      /ConnectedEvent.source/,
    ],
    [
      `{ repository(owner: "acme", name: "widgets") { pullRequest(number: 1) { commits(first: 1) { nodes { commit { repository { pushedAt } } } } } } }`,
      /another repository/,
    ],
    [`{ search(query: "bug", type: ISSUE, first: 1) { issueCount } }`, /no repo: qualifier/],
    [
      `{ search(query: "repo:acme/widgets repo:acme/secret", type: ISSUE, first: 1) { issueCount } }`,
      /not for acme\/secret/,
    ],
    [`{ search(query: "repo:acme/widgets", type: USER, first: 1) { userCount } }`, /beyond/],
    [`{ resource(url: "https://github.com/acme/secret") { url } }`, /Query.resource/],
    [`{ relay { repository(owner: "acme", name: "secret") { name } } }`, /Query.relay/],
    [`{ enterprise(slug: "x") { name } }`, /Query.enterprise/],
    [`{ ${OWN} { name } } query B { viewer { login } }`, /several operations/],
    [`subscription { x }`, /only queries and mutations/],
    [
      `{ ${OWN} { ...A } } fragment A on Repository { ...B } fragment B on Repository { ...A }`,
      /contains itself/,
    ],
    [`{ ${OWN} { ...A } }`, /not defined/],
    [`type Query { x: Int }`, /not valid GraphQL/],
    [`{ ${OWN} { name }`, /not valid GraphQL/],
    [`{ ${OWN} @skip(if: true) { parent { diskUsage } } }`, /Repository.diskUsage/],
    [
      `mutation { createIssue(input: { repositoryId: "R_mine", title: "x", milestoneId: "I_other" }) { issue { id } } }`,
      /no repository of the token/,
    ],
    [
      `mutation { createIssue(input: { repositoryId: "R_mine", repositoryId: "R_other", title: "x" }) { issue { id } } }`,
      /not one of type/,
    ],
    [
      `mutation { createIssue(input: { repositoryId: "R_mine", evil: 1 }) { issue { id } } }`,
      /not in the schema/,
    ],
    [
      `mutation { transferIssue(input: { issueId: "I_mine", repositoryId: "R_mine" }) { issue { id } } }`,
      /Mutation.transferIssue/,
    ],
    [
      `mutation { createPullRequest(input: { repositoryId: "R_mine", baseRefName: "main", headRefName: "mallory:x", title: "t" }) { pullRequest { id } } }`,
      /another repository/,
    ],
    [
      `mutation { createPullRequest(input: { repositoryId: "R_mine", headRepositoryId: "I_other", baseRefName: "main", headRefName: "x", title: "t" }) { pullRequest { id } } }`,
      /no repository of the token/,
    ],
    [
      `mutation { addComment(input: { subjectId: "U_bob", body: "x" }) { clientMutationId } }`,
      /no repository of the token/,
    ],
    [
      `mutation { createCommitOnBranch(input: { branch: { repositoryNameWithOwner: "acme/secret", branchName: "m" }, message: { headline: "x" }, expectedHeadOid: "0", fileChanges: {} }) { commit { oid } } }`,
      /not for acme\/secret/,
    ],
    [
      `mutation { updateSubscription(input: { subscribableId: "I_mine", state: IGNORED }) { clientMutationId } }`,
      /Mutation.updateSubscription/,
    ],
    [
      `mutation { closeIssue(input: { issueId: "I_mine" }) { issue { repository { owner { ... on User { gists { totalCount } } } } } } }`,
      /User.gists/,
    ],
  ];
  for (const [query, why, variables] of refused) {
    it(`refused: ${query}`, async () => {
      assert.match(await ofGraphql(ALL, query, variables), why);
    });
  }

  const lacking: [scopes: string, query: string, why: RegExp][] = [
    ["metadata:read", `{ ${OWN} { issues { totalCount } } }`, /issues:read/],
    [
      "metadata:read",
      `{ ${OWN} { object(expression: "main:a") { ... on Blob { text } } } }`,
      /contents:read/,
    ],
    [
      "issues:read",
      `{ ${OWN} { issueOrPullRequest(number: 1) { ... on PullRequest { title } } } }`,
      /pull_requests:read/,
    ],
    [
      "pull_requests:read",
      `{ ${OWN} { pullRequest(number: 1) { commits(first: 1) { nodes { commit { message } } } } } }`,
      /contents:read/,
    ],
    ["contents:read", `{ ${OWN} { vulnerabilityAlerts { totalCount } } }`, /vulnerability_alerts:read/],
    ["issues:read", `mutation { closeIssue(input: { issueId: "I_mine" }) { issue { id } } }`, /issues:write/],
    [
      "pull_requests:write",
      `mutation { addComment(input: { subjectId: "I_mine", body: "x" }) { subject { id } } }`,
      /issues:write/,
    ],
    [
      "pull_requests:write",
      `mutation { updateIssueComment(input: { id: "IC_issue", body: "x" }) { clientMutationId } }`,
      /issues:write/,
    ],
    ["metadata:read", `{ node(id: "IC_issue") { ... on IssueComment { body } } }`, /issues:read/],
  ];
  for (const [scopes, query, why] of lacking) {
    it(`${scopes} is not enough for ${query}`, async () => {
      assert.match(await ofGraphql(limits(scopes), query), why);
    });
  }

  it("operationName selects what is judged", async () => {
    const two = `query A { ${OWN} { name } } query B { repository(owner: "acme", name: "secret") { name } }`;
    assert.equal(await ofGraphql(ALL, two, {}, "A"), "allowed");
    assert.match(await ofGraphql(ALL, two, {}, "B"), /not for acme\/secret/);
    assert.match(await ofGraphql(ALL, two, {}, "C"), /no such operation/);
  });

  it("bodies that are no single request are refused", () => {
    for (const body of [
      [{ query: "{a}" }],
      null,
      "x",
      {},
      { query: 5 },
      { query: "{a}", variables: [] },
      { query: "{a}", operationName: 3 },
    ]) {
      assert.equal(typeof readGraphqlRequest(body), "string");
    }
  });

  it("fragments that multiply and selections that nest without end are cut off", async () => {
    const many = Array.from(
      { length: 20 },
      (_, n) => `fragment F${n} on Repository { ...F${n + 1} ...F${n + 1} }`,
    );
    const bomb = `{ ${OWN} { ...F0 } } ${many.join(" ")} fragment F20 on Repository { name }`;
    assert.match(await ofGraphql(ALL, bomb), /too many fields/);
    const deep = `{ ${OWN} ${"{ defaultBranchRef { repository ".repeat(60)} { id } ${"} }".repeat(60)} }`;
    assert.match(await ofGraphql(ALL, deep), /nested too deeply/);
    assert.match(await ofGraphql(ALL, `{ ${"a ".repeat(20_000)} }`), /too long/);
  });
});
