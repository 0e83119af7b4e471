import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Secret } from "@devplat/base";
import { codeHostFor } from "./code-host-for.ts";

describe("a code host", () => {
  it("github.com has its API, GraphQL and uploads under names of their own", () => {
    const host = codeHostFor({ kind: "github", url: "https://github.com", api_url: undefined });
    assert.deepEqual(
      [host.apiUrl, host.graphqlUrl, host.uploadsUrl],
      ["https://api.github.com", "https://api.github.com/graphql", "https://uploads.github.com"],
    );
    assert.equal(host.apps?.installUrl("a b"), "https://github.com/apps/a%20b/installations/new");
    assert.equal(
      host.apps?.registrationUrl("acme"),
      "https://github.com/organizations/acme/settings/apps/new",
    );
  });

  it("Enterprise Server has them next to each other under its web address", () => {
    const host = codeHostFor({ kind: "github", url: "https://git.example/x", api_url: undefined });
    assert.deepEqual(
      [host.apiUrl, host.graphqlUrl, host.uploadsUrl],
      [
        "https://git.example/x/api/v3",
        "https://git.example/x/api/graphql",
        "https://git.example/x/api/uploads",
      ],
    );
    assert.equal(host.oauth.tokenUrl, "https://git.example/x/login/oauth/access_token");
    assert.equal(host.apps?.installUrl("bot"), "https://git.example/x/github-apps/bot/installations/new");
  });

  it("host.api_url counts where it is given", () => {
    const host = codeHostFor({ kind: "github", url: "https://a.example", api_url: "https://api.a.example" });
    assert.deepEqual(
      [host.apiUrl, host.graphqlUrl, host.uploadsUrl],
      ["https://api.a.example", "https://api.a.example/graphql", undefined],
    );
  });

  it("Gitea has no GraphQL, no uploads host and no apps", () => {
    const host = codeHostFor({ kind: "gitea", url: "https://gitea.example", api_url: undefined });
    assert.deepEqual(
      [host.apiUrl, host.graphqlUrl, host.uploadsUrl, host.apps, host.oauth.revokeUrl("x")],
      ["https://gitea.example/api/v1", undefined, undefined, undefined, undefined],
    );
  });

  it("git takes a token as Basic, the API as Bearer (GitHub) or token (Gitea)", () => {
    const token = new Secret("t");
    for (const [kind, api] of [
      ["github", "Bearer t"],
      ["gitea", "token t"],
    ] as const) {
      const host = codeHostFor({ kind, url: "https://h.example", api_url: undefined });
      assert.equal(host.gitAuthorization(token).reveal(), `Basic ${btoa("x-access-token:t")}`);
      assert.equal(host.apiAuthorization(token).reveal(), api);
    }
  });
});
