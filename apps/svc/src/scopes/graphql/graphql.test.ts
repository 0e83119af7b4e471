import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readGraphqlRequest } from "./graphql-request.ts";
import { limits, ofGraphql } from "../scopes.test-kit.ts";

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

  // REST needs the same right for texts, names, ids, numbers, and for whether an object exists.
  const guarded: [fields: string, needed: string][] = [
    ["labels(first: 9) { nodes { name description } }", "issues:read"],
    ["labels(first: 9) { totalCount }", "pull_requests:read"],
    ["labels(first: 9) { pageInfo { endCursor } }", "issues:read"],
    ["labels(first: 9) { __typename }", "issues:read"],
    ['label(name: "secret") { id }', "pull_requests:read"],
    ['label(name: "secret") { __typename }', "issues:read"],
    ["milestones(first: 9) { edges { node { title } } }", "issues:read"],
    ["milestones(first: 9) { edges { cursor } }", "pull_requests:read"],
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

  it("a repository behind a permitted value still needs the right for its issues", async () => {
    const query = `{ ${OWN} { pullRequest(number: 1) { labels(first: 1) { nodes { name } } repository { issues(first: 1) { totalCount } } } } }`;
    assert.notEqual(await ofGraphql(limits("pull_requests:read"), query), "allowed");
    assert.equal(await ofGraphql(limits("pull_requests:read,issues:read"), query), "allowed");
  });

  it("either right reads labels, with write it changes them; neither opens issues [svc 9.8]", async () => {
    const ofRepository = `{ ${OWN} { labels(first: 9) { nodes { name } } pullRequests(first: 1) { nodes { title } } } }`;
    assert.equal(await ofGraphql(limits("pull_requests:read"), ofRepository), "allowed");
    const behind = `{ ${OWN} { labels(first: 9) { nodes { issues(first: 1) { nodes { title } } } } } }`;
    assert.match(await ofGraphql(limits("pull_requests:read"), behind), /lacks the scope issues:read for/);
    const create = `mutation { createLabel(input: {repositoryId: "R_mine", name: "x", color: "f00"}) { label { name } } }`;
    for (const scopes of ["issues:write", "pull_requests:write"]) {
      assert.equal(await ofGraphql(limits(scopes), create), "allowed", scopes);
    }
    assert.match(
      await ofGraphql(limits("pull_requests:read,issues:read"), create),
      /lacks the scope issues:write or pull_requests:write for acme\/widgets/,
    );
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
    [`query($n: String!) { repository(owner: "acme", name: $n) { name } }`, /as strings/],
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
    [`query($id: ID!) { node(id: $id) { id } }`, /id is not a string/, { id: 5 }],
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

  it("operationName selects the operation that is checked", async () => {
    const two = `query A { ${OWN} { name } } query B { repository(owner: "acme", name: "secret") { name } }`;
    assert.equal(await ofGraphql(ALL, two, {}, "A"), "allowed");
    assert.match(await ofGraphql(ALL, two, {}, "B"), /not for acme\/secret/);
    assert.match(await ofGraphql(ALL, two, {}, "C"), /no such operation/);
  });

  it("refuses bodies that are not a single request", () => {
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
