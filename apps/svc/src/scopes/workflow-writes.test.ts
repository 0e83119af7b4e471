import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { codeHostFor } from "../code-host/code-host-for.ts";
import { parseScopes } from "./scopes.ts";
import { ScopeExplainer } from "../administration/tokens/explain.ts";
import { githubGraphql } from "./scope-authorizers.ts";
import type { IdResolver, Decision } from "./decision.ts";
import { ScopeAuthorizers } from "./scope-authorizers.ts";
import { contentByBody, isWorkflowPath } from "./workflow-writes.ts";

const REFS = "/repos/{owner}/{repo}/git/refs";

describe("content that a write adds besides files that it names", () => {
  it("paths of workflows are known however they are written", () => {
    for (const path of [
      ".github/workflows/ci.yml",
      ".github/workflows",
      ".GitHub/Workflows/x",
      "./.github/workflows/x",
      "/.github//workflows/x",
      ".gitea/workflows/x",
      ".forgejo/workflows/x",
      ".github\\workflows\\x",
      "docs/../.github/workflows/x",
      ".github",
    ]) {
      assert.ok(isWorkflowPath(path), path);
    }
    for (const path of ["", "README.md", ".github/CODEOWNERS", "docs/.github/workflows/x", "workflows/x"]) {
      assert.ok(!isWorkflowPath(path), path);
    }
  });

  it("refs, merges, releases, Gitea's branches and tags name commits in their bodies", () => {
    const rows: [rule: string, body: unknown, added: unknown][] = [
      [`POST ${REFS}`, { ref: "refs/heads/x", sha: "abc" }, [{ revision: "abc" }]],
      [`PATCH ${REFS}/{ref}`, { sha: "abc", force: true }, [{ revision: "abc", onto: "heads/main" }]],
      ["POST /repos/{owner}/{repo}/merges", { base: "main", head: "x" }, [{ revision: "x", onto: "main" }]],
      ["POST /repos/{owner}/{repo}/releases", { tag_name: "v1" }, []],
      ["POST /repos/{owner}/{repo}/releases", { target_commitish: "abc" }, [{ revision: "abc" }]],
      [
        "POST /repos/{owner}/{repo}/branches",
        { old_ref_name: "refs/pull/1/head" },
        [{ revision: "refs/pull/1/head" }],
      ],
      ["POST /repos/{owner}/{repo}/tags", { target: "abc" }, [{ revision: "abc" }]],
      // Fields without a meaning name nothing, least of all what it is compared with.
      ["POST /repos/{owner}/{repo}/tags", { target: "abc", base: "x", "": "x" }, [{ revision: "abc" }]],
    ];
    for (const [rule, body, added] of rows) {
      const found = contentByBody(rule, "acme/widgets", "heads/main", body);
      const wanted = (added as object[]).map((each) => ({
        kind: "revision",
        repository: "acme/widgets",
        ...each,
      }));
      assert.deepEqual(found, wanted, rule);
    }
    for (const body of [[], "x", null, { SHA: "abc" }, { sha: ["abc"] }]) {
      assert.equal(typeof contentByBody(`POST ${REFS}`, "acme/widgets", "", body), "string");
    }
  });

  const resolver: IdResolver = {
    repositoryById: async () => undefined,
    isPullRequest: async () => false,
    nodes: async (ids) =>
      new Map(
        ids.map((id) => [
          id,
          { type: id === "P" ? "PullRequest" : "Repository", repository: "acme/widgets", number: "7" },
        ]),
      ),
  };
  const limits = {
    repositories: ["acme/widgets"],
    scopes: parseScopes("contents:write,pull_requests:write,issues:write").scopes,
  };
  const authorizer = githubGraphql();
  const decision = async (mutation: string): Promise<Extract<Decision, { kind: "requires" }>> => {
    const query = `mutation { ${mutation} { clientMutationId } }`;
    const found = await (
      await authorizer
    ).decide({ query, operationName: undefined, variables: {} }, limits, resolver);
    assert.ok(found.kind === "requires", JSON.stringify(found));
    return found;
  };

  it("GraphQL: refs, merges and pull requests add the content that their ids name", async () => {
    const repository = "acme/widgets";
    const rows: [mutation: string, added: object][] = [
      ['createRef(input: { repositoryId: "R", name: "refs/heads/x", oid: "abc" })', { revision: "abc" }],
      ['updateRef(input: { refId: "F", oid: "abc", force: true })', { revision: "abc" }],
      [
        'updateRefs(input: { repositoryId: "R", refUpdates: [{ name: "refs/heads/x", afterOid: "abc" }] })',
        { revision: "abc", onto: "refs/heads/x" },
      ],
      [
        'updateRefs(input: { repositoryId: "R", refUpdates: { name: "refs/heads/x", afterOid: "abc" } })',
        { revision: "abc", onto: "refs/heads/x" },
      ],
      ['createLinkedBranch(input: { issueId: "I", oid: "abc" })', { revision: "abc" }],
      [
        'mergeBranch(input: { repositoryId: "R", base: "main", head: "abc" })',
        { revision: "abc", onto: "main" },
      ],
    ];
    for (const [mutation, added] of rows) {
      assert.deepEqual(
        (await decision(mutation)).adds,
        [{ kind: "revision", repository, ...added }],
        mutation,
      );
    }
    for (const name of ["mergePullRequest", "enablePullRequestAutoMerge", "enqueuePullRequest"]) {
      const { adds } = await decision(`${name}(input: { pullRequestId: "P" })`);
      assert.deepEqual(adds, [{ kind: "pull_request", repository, number: "7" }], name);
    }
  });

  it("scopes explain names the workflow folders and tokens.push_needs_workflows", async () => {
    const host = codeHostFor({ kind: "github", url: "https://github.com", api_url: undefined });
    const explained = async (method: string, url: string, pushNeedsWorkflows = false): Promise<string> => {
      const explainer = new ScopeExplainer(new ScopeAuthorizers("github"), host, () => pushNeedsWorkflows);
      const { message } = await explainer.explain(limits, { kind: "address", method, url });
      return message;
    };
    const looked = /as long as it changes no workflows/;
    assert.match(await explained("PUT", "/repos/acme/widgets/pulls/7/merge"), looked);
    assert.match(await explained("POST", "/repos/acme/widgets/git/refs"), looked);
    assert.equal(await explained("POST", "/repos/acme/widgets/issues"), "The token allows it");
    const push = "https://github.com/acme/widgets.git/git-receive-pack";
    assert.equal(await explained("POST", push), "The token allows it");
    assert.match(await explained("POST", push, true), /lacks the scope workflows:write/);
  });

  it("GraphQL: workflow paths need workflows:write, revertPullRequest always does", async () => {
    const commit = (changes: string): string =>
      `createCommitOnBranch(input: { branch: { repositoryNameWithOwner: "acme/widgets", branchName: "main" }, message: { headline: "x" }, expectedHeadOid: "0", fileChanges: { ${changes} } })`;
    const rows: [mutation: string, needed: boolean][] = [
      [commit('additions: [{ path: "README.md", contents: "" }]'), false],
      [commit('additions: [{ path: ".github/workflows/x.yml", contents: "" }]'), true],
      [commit('additions: { path: ".github/workflows/x.yml", contents: "" }'), true],
      [commit('deletions: [{ path: ".github/workflows/x.yml" }]'), true],
      ['revertPullRequest(input: { pullRequestId: "P" })', true],
    ];
    for (const [mutation, needed] of rows) {
      const { required } = await decision(mutation);
      assert.equal(
        required.needs.some(({ resource }) => resource === "workflows"),
        needed,
        mutation,
      );
    }
  });
});
