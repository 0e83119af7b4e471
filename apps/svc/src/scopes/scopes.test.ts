import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { restBodyFault } from "./rest/rest-body.ts";
import { limits, ofRest } from "./scopes.test-kit.ts";
import { issueKindsOfSearch, repositoriesOfSearch } from "./search-query.ts";

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
    ["pull_requests:read", "GET", "/search/labels?repository_id=1&q=bug"],
    ["issues:read", "GET", "/repos/acme/widgets/labels"],
    ["pull_requests:read", "GET", "/repos/acme/widgets/labels"],
    ["pull_requests:read", "GET", "/repos/acme/widgets/milestones/1"],
    ["pull_requests:read", "GET", "/repos/acme/widgets/assignees"],
    ["pull_requests:write", "POST", "/repos/acme/widgets/labels"],
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
    [
      "contents:write",
      "GET",
      "/repos/acme/widgets/labels",
      /lacks the scope issues:read or pull_requests:read for/,
    ],
    [
      "pull_requests:read",
      "POST",
      "/repos/acme/widgets/labels",
      /lacks the scope issues:write or pull_requests:write/,
    ],
    [
      "pull_requests:write",
      "GET",
      "/repos/acme/widgets/issues/comments/1",
      /lacks the scope issues:read for/,
    ],
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
    [ALL, "GET", "/search/issues?q=repo:acme/widgets&q=repo:acme/secret", /exactly one parameter q/],
    [ALL, "GET", "/search/issues?q=repo:acme/widgets+OR+repo:acme/secret", /boolean operator/],
    [ALL, "GET", "/search/issues?q=repo:acme/widgets+repo:acme/secret", /not for acme\/secret/],
    [ALL, "GET", "/search/code?q=repo:acme/widgets+org:acme", /qualifier org/],
    [ALL, "GET", '/search/code?q="repo:acme/widgets"', /no repo: qualifier/],
    [ALL, "GET", "/search/code?q=repo:acme/widgets&q[]=x", /nested parameter/],
    [ALL, "GET", "/search/code?q=x%C2%A0repo:acme/widgets", /not a space/],
    [ALL, "GET", "/search/code?q=x%09repo:acme/widgets", /not a space/],
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
        // A path below the repository belongs to it, unless a part of the path leads out again.
        const leads = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)|%2f/i.test(target);
        assert.ok(open && !leads, target);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("searches", () => {
  it("only repo: qualifiers outside of quotation marks count, and no text widens them", () => {
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
  it("are both, unless the search names one; a review: qualifier means pull requests", () => {
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
