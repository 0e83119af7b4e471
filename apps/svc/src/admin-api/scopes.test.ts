import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";

let admin: TestAdministration;
let session: string;
before(async () => {
  admin = await startAdministration();
  session = await admin.session("alice", "user");
});
after(async () => admin.stop());

async function explain(
  body: unknown,
  bearer = session,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${admin.url}/api/scopes/explain`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${bearer}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
const SCOPES = { scopes: "issues:read", repositories: ["acme/widgets"] };

describe("POST /api/scopes/explain", () => {
  const rows: [name: string, request: Record<string, unknown>, expected: Record<string, unknown>][] = [
    [
      "an allowed path of the API",
      { url: "/repos/acme/widgets/issues" },
      {
        allowed: true,
        rule: "GET /repos/{owner}/{repo}/issues",
        needs: ["issues:read"],
        repositories: ["acme/widgets"],
        message: "The token allows it",
      },
    ],
    [
      "the API's own address",
      { url: "https://api.github.com/repos/acme/widgets/issues?page=2" },
      { allowed: true },
    ],
    [
      "an address under ours",
      { url: "http://svc.example/api/v3/repos/acme/widgets/issues" },
      { allowed: true },
    ],
    [
      "a missing scope, by name",
      { url: "/repos/acme/widgets/issues", method: "POST" },
      { allowed: false, message: "The token lacks the scope issues:write for acme/widgets" },
    ],
    [
      "another repository",
      { url: "/repos/acme/other" },
      { allowed: false, message: "The token is not for acme/other" },
    ],
    ["an unknown route", { url: "/repos/acme/widgets/nothing" }, { allowed: false }],
    [
      "an id",
      { url: "/repositories/5" },
      { allowed: false, message: "It depends on the value of the id, which only the code host knows" },
    ],
    [
      "a clone",
      { url: "https://github.com/acme/widgets.git/info/refs?service=git-upload-pack" },
      { allowed: false, rule: "git info-refs", needs: ["contents:read"] },
    ],
    [
      "a query",
      { graphql: `{ repository(owner: "acme", name: "widgets") { issues(first: 1) { totalCount } } }` },
      { allowed: true, needs: ["issues:read"] },
    ],
    [
      "a query with variables",
      {
        graphql: {
          query: `query Q($n: String!) { repository(owner: "acme", name: $n) { name } }`,
          variables: { n: "other" },
        },
      },
      { allowed: false, rule: "query Q", message: "The token is not for acme/other" },
    ],
    ["a query that is none", { graphql: "{" }, { allowed: false, rule: "graphql" }],
  ];
  for (const [name, request, expected] of rows) {
    it(`explains ${name}`, async () => {
      const response = await explain({ ...SCOPES, ...request });
      assert.equal(response.status, 200);
      for (const [key, value] of Object.entries(expected)) assert.deepEqual(response.body[key], value, key);
    });
  }

  it("explains a token by its value, and not one that was never issued [svc 6.8]", async () => {
    const minted = await fetch(`${admin.url}/api/tokens`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${session}` },
      body: JSON.stringify({ repository: "acme/widgets", scopes: "contents:read", duration: "1h" }),
    });
    const { token } = (await minted.json()) as { token: string };
    const known = await explain({ token, url: "/repos/acme/widgets/contents/a" });
    assert.equal(known.body["allowed"], true);
    const unknown = await explain({ token: `svcx_${"0".repeat(49)}`, url: "/user" });
    assert.deepEqual([unknown.status, JSON.stringify(unknown.body).includes("00000")], [404, false]);
  });

  const bad: [name: string, body: unknown, status: number][] = [
    ["nothing", {}, 422],
    ["token and scopes", { ...SCOPES, token: "x", url: "/user" }, 422],
    ["url and graphql", { ...SCOPES, url: "/user", graphql: "{a}" }, 422],
    ["scopes without repositories", { scopes: "issues:read", url: "/user" }, 422],
    ["an unknown resource", { ...SCOPES, scopes: "x:read", url: "/user" }, 422],
    ["a repository that is none", { ...SCOPES, repositories: ["../x"], url: "/user" }, 422],
    ["an unknown field", { ...SCOPES, url: "/user", evil: 1 }, 400],
    ["a wrong type", { ...SCOPES, url: 5 }, 422],
    ["a method that is none", { ...SCOPES, url: "/user", method: "get it\r\n" }, 422],
    ["a list", [], 400],
  ];
  for (const [name, body, status] of bad) {
    it(`${name} is ${status}`, async () => assert.equal((await explain(body)).status, status));
  }

  it("needs a session", async () => {
    assert.equal((await explain({ ...SCOPES, url: "/user" }, "svcr_no")).status, 401);
  });
});
