import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { codeHostFor } from "../../code-host/code-host-for.ts";
import { VirtualHosts, type VirtualHost } from "./virtual-host.ts";
import { ApiAddresses } from "./api-address.ts";
import { pathView } from "../../api-proxy/api-view.ts";

type Row = [host: string, target: string, found: string];
type Kind = "github" | "gitea";

function assertFound(kind: Kind, url: string, rows: readonly Row[]): void {
  const host = codeHostFor({ kind, url, api_url: undefined });
  const addresses = new ApiAddresses(host);
  const virtualHosts = new VirtualHosts({
    baseUrl: "https://svc.example",
    managementHost: "svc.example",
    hostUrl: host.url,
    apiUrl: host.apiUrl,
    uploadsUrl: host.uploadsUrl,
    apiPrefixes: addresses.namedPrefixes,
  });
  for (const [name, target, expected] of rows) {
    const virtualHost: VirtualHost = virtualHosts.of(name, target.split("?")[0] ?? "");
    const found = addresses.find(virtualHost, target);
    const text = found === undefined ? `no API (${virtualHost})` : `${found.kind} ${found.base}${found.path}`;
    assert.equal(text, expected, `${name} ${target}`);
  }
}

describe("where the API is", () => {
  it("in front of github.com: three names, and our own paths", () => {
    assertFound("github", "https://github.com", [
      ["api.github.com", "/repos/a/b", "rest https://api.github.com/repos/a/b"],
      ["API.github.com:443", "/graphql", "graphql https://api.github.com/graphql"],
      ["api.github.com", "/graphqlx", "rest https://api.github.com/graphqlx"],
      [
        "uploads.github.com",
        "/repos/a/b/releases/1/assets?name=x",
        "uploads https://uploads.github.com/repos/a/b/releases/1/assets",
      ],
      ["github.com", "/api/v3/user", "no API (code_host)"],
      ["svc.example", "/api/v3/user", "rest https://api.github.com/user"],
      ["svc.example", "/api/graphql", "graphql https://api.github.com/graphql"],
      ["svc.example", "/api/uploads/repos/a/b", "uploads https://uploads.github.com/repos/a/b"],
      ["svc.example", "/api/tokens", "no API (management)"],
      ["svc.example", "/api/v3x", "no API (management)"],
      ["other.example", "/api/v3/user", "no API (unknown)"],
    ]);
  });

  it("in front of Enterprise Server: one name, told apart by path", () => {
    assertFound("github", "https://git.example", [
      ["git.example", "/api/v3/user", "rest https://git.example/api/v3/user"],
      ["git.example", "/api/graphql", "graphql https://git.example/api/graphql"],
      ["git.example", "/api/uploads/repos/a/b", "uploads https://git.example/api/uploads/repos/a/b"],
      ["git.example", "/acme/widgets", "no API (code_host)"],
      ["svc.example", "/api/v3/user", "rest https://git.example/api/v3/user"],
    ]);
  });

  it("in front of Gitea: /api/v1, and neither GraphQL nor uploads", () => {
    assertFound("gitea", "https://gitea.example", [
      ["gitea.example", "/api/v1/user", "rest https://gitea.example/api/v1/user"],
      ["svc.example", "/api/v1/user", "rest https://gitea.example/api/v1/user"],
      ["svc.example", "/api/graphql", "no API (management)"],
      ["svc.example", "/api/v3/user", "no API (management)"],
    ]);
  });

  it("Link and Location are rewritten by whole addresses only", () => {
    const view = pathView([
      ["https://api.example/graphql", "https://svc/api/graphql"],
      ["https://api.example", "https://svc/api/v3"],
    ]);
    assert.equal(
      view.links(
        `<https://api.example/repositories/1/x?page=2>; rel="next", <https://else.example/a>; rel="x"`,
      ),
      `<https://svc/api/v3/repositories/1/x?page=2>; rel="next", <https://else.example/a>; rel="x"`,
    );
    assert.equal(view.location("https://api.example.evil/x"), "https://api.example.evil/x");
    assert.equal(view.location("https://api.example?x=1"), "https://svc/api/v3?x=1");
  });
});
