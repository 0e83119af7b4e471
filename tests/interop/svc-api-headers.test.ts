import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  FORWARDED,
  FORWARDED_WITH_OWN,
  RELAYED,
  RELAYED_TO_OWN,
} from "../../apps/svc/src/api-proxy/api-headers.ts";
import { GIT_FORWARDED, GIT_RELAYED } from "../../apps/svc/src/upstream/headers.ts";
import { STORED, startApiStand, type ApiStand } from "./svc-api-stand.ts";

let stand: ApiStand;
let token: string;
before(async () => {
  stand = await startApiStand();
  token = await stand.mint("issues:write,contents:read");
});
after(() => stand.stop());
beforeEach(() => {
  stand.codeHost.clearFaults();
  stand.codeHost.resetCalls();
});

/** Response headers about the credential and its account. */
const OF_CREDENTIAL = {
  "X-OAuth-Scopes": "repo, admin:org, delete_repo",
  "X-Accepted-OAuth-Scopes": "repo",
  "X-OAuth-Client-Id": "Iv1.0123456789abcdef",
  "GitHub-Authentication-Token-Expiration": "2031-01-02 03:04:05 UTC",
  "X-GitHub-OTP": "required; app",
} as const;
/** Response headers about the origin or the connection. */
const OF_ORIGIN = {
  "Set-Cookie": "session=planted",
  "Clear-Site-Data": '"*"',
  "Strict-Transport-Security": "max-age=1",
  "Alt-Svc": 'h3=":443"',
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "ETag",
  NEL: "{}",
  "Report-To": "{}",
  "Reporting-Endpoints": 'x="https://x.example"',
  "Public-Key-Pins": "x",
  Refresh: "0; url=https://x.example",
  Server: "host",
  "X-Frame-Options": "deny",
  "X-Gitea-Warning-Unknown": "x",
  "X-Unknown": "x",
} as const;
const KEPT = {
  ETag: '"a"',
  "X-RateLimit-Remaining": "4999",
  "X-GitHub-Request-Id": "TEST:1",
  "X-GitHub-Media-Type": "github.v3",
  "X-Accepted-GitHub-Permissions": "issues=read",
  "X-Poll-Interval": "60",
  "X-Total-Count": "7",
  "Retry-After": "1",
} as const;

const planted = (path: RegExp, more: Record<string, string> = {}, type = "application/json"): void => {
  const headers = { "Content-Type": type, ...OF_CREDENTIAL, ...OF_ORIGIN, ...KEPT, ...more };
  stand.codeHost.inject({ path }, { status: 200, headers, body: "{}" });
};
const given = (answer: Response, names: object): (string | null)[] =>
  Object.keys(names).map((name) => answer.headers.get(name));

describe("headers of answers of the API", () => {
  it("show a proxy token its own data, and nothing of the credential behind it [svc 10.5]", async () => {
    planted(/issues$/);
    const answer = await stand.ask(token, "GET", "/api/v3/repos/acme/widgets/issues");
    const expiry = "GitHub-Authentication-Token-Expiration";
    const { [expiry]: theirs, ...others } = OF_CREDENTIAL;
    assert.deepEqual(
      given(answer, others),
      Object.keys(others).map(() => null),
    );
    assert.equal(answer.headers.get("X-Svc-Scopes"), "contents:read, issues:write, metadata:read");
    const end = answer.headers.get(expiry) ?? "";
    assert.match(end, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    assert.notEqual(end, theirs);
    const inMs = Date.parse(end.replace(" UTC", "Z").replace(" ", "T")) - Date.now();
    assert.ok(inMs > 50 * 60_000 && inMs <= 60 * 60_000, end);
    assert.deepEqual(given(answer, KEPT), Object.values(KEPT));
  });

  it("show a caller with its own credential the code host's data about it", async () => {
    planted(/issues$/);
    const answer = await stand.ask(STORED, "GET", "/api/v3/repos/acme/widgets/issues");
    assert.deepEqual(given(answer, OF_CREDENTIAL), Object.values(OF_CREDENTIAL));
    assert.equal(answer.headers.get("X-Svc-Scopes"), null);
  });

  it("never speak for the origin or the connection, nor cross if nobody knows them", async () => {
    planted(/issues$/);
    for (const credential of [token, STORED, undefined]) {
      const answer = await stand.ask(credential, "GET", "/api/v3/repos/acme/widgets/issues");
      assert.deepEqual(
        given(answer, OF_ORIGIN),
        Object.keys(OF_ORIGIN).map(() => null),
      );
    }
  });

  it("of GraphQL are the same", async () => {
    planted(/graphql/);
    const answer = await stand.graphql(token, "{ viewer { login } }");
    assert.deepEqual(
      [answer.headers.get("X-OAuth-Scopes"), answer.headers.get("X-Svc-Scopes")],
      [null, "contents:read, issues:write, metadata:read"],
    );
  });

  it("pass X-GitHub-SSO on to tokens where it is required, without organizations", async () => {
    for (const [said, expected] of [
      [
        "required; url=https://code.example/orgs/acme/sso",
        "required; url=https://code.example/orgs/acme/sso",
      ],
      ["partial-results; organizations=21955855,20582480", null],
    ] as const) {
      stand.codeHost.clearFaults();
      planted(/issues$/, { "X-GitHub-SSO": said });
      const answer = await stand.ask(token, "GET", "/api/v3/repos/acme/widgets/issues");
      assert.equal(answer.headers.get("X-GitHub-SSO"), expected);
    }
  });
});

describe("headers of git, LFS and archives", () => {
  const basic = (): string => `Basic ${Buffer.from(`x:${token}`).toString("base64")}`;
  const routes: readonly (readonly [name: string, path: string, fault: RegExp, type: string])[] = [
    [
      "info/refs",
      "/acme/widgets.git/info/refs?service=git-upload-pack",
      /info\/refs/,
      "application/x-git-upload-pack-advertisement",
    ],
    ["LFS", "/acme/widgets.git/info/lfs/locks", /locks/, "application/vnd.git-lfs+json"],
    ["archives", "/acme/widgets/archive/refs/heads/main.tar.gz", /archive/, "application/gzip"],
  ];
  for (const [name, path, fault, type] of routes) {
    it(`of ${name} have no data of the credential or the origin`, async () => {
      planted(fault, { "X-GitHub-SSO": "required; url=https://x.example" }, type);
      const answer = await fetch(stand.svc.url + path, { headers: { authorization: basic() } });
      assert.equal(answer.status, 200);
      const hidden = { ...OF_CREDENTIAL, ...OF_ORIGIN, "X-GitHub-SSO": "" };
      assert.deepEqual(
        given(answer, hidden),
        Object.keys(hidden).map(() => null),
      );
      assert.equal(answer.headers.get("etag"), KEPT.ETag);
    });
  }
});

describe("headers of requests of the API", () => {
  const asked = {
    "X-GitHub-OTP": "123456",
    "X-Gitea-OTP": "123456",
    "X-GitHub-Api-Version": "2022-11-28",
    "X-GitHub-Unknown": "x",
    "X-Gitea-Internal-Auth": "x",
    Cookie: "a=b",
    "X-Forwarded-For": "192.0.2.1",
    Sudo: "root",
  };
  it("cross by a list; one-time passwords only with a credential of the caller's own", async () => {
    for (const [credential, otp] of [
      [token, undefined],
      [STORED, "123456"],
    ] as const) {
      stand.codeHost.resetCalls();
      await stand.ask(credential, "GET", "/api/v3/repos/acme/widgets/issues", { headers: asked });
      const { headers } = stand.codeHost.calls.at(-1) ?? {};
      assert.deepEqual(
        Object.keys(asked).map((name) => headers?.[name.toLowerCase()]),
        [otp, otp, "2022-11-28", undefined, undefined, undefined, undefined, undefined],
      );
    }
  });
});

describe("GET /user", () => {
  const body = JSON.stringify({
    login: "alice",
    id: 7,
    html_url: "https://code.example/alice",
    name: "Alice",
    email: "alice@private.example",
    two_factor_authentication: false,
    plan: { name: "pro", space: 1, private_repos: 9999 },
    total_private_repos: 81,
    owned_private_repos: 80,
    private_gists: 3,
    disk_usage: 5,
    collaborators: 4,
    is_admin: true,
    last_login: "2026-01-01T00:00:00Z",
  });
  it("give a limited token the public account profile, and own credentials all of it [svc 10.5]", async () => {
    stand.codeHost.inject(
      { path: /\/user$/ },
      { status: 200, headers: { "content-type": "application/json" }, body },
    );
    const ours = (await (await stand.ask(token, "GET", "/api/v3/user")).json()) as object;
    assert.deepEqual(Object.keys(ours), ["login", "id", "html_url", "name"]);
    const own = (await (await stand.ask(STORED, "GET", "/api/v3/user")).json()) as object;
    assert.deepEqual(own, JSON.parse(body));
  });
});

describe("docs/svc/api-proxy.md", () => {
  it("lists the headers that cross, as the program has them [svc 10.6]", async () => {
    const text = await readFile(new URL("../../docs/svc/api-proxy.md", import.meta.url), "utf8");
    const section = text.slice(text.indexOf("## Headers that cross"));
    const rows = section.split("\n").filter((line) => /^\| (?:API|git)/.test(line));
    const listed = rows.map((line) => [...line.matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    const lists = [FORWARDED, FORWARDED_WITH_OWN, RELAYED, RELAYED_TO_OWN, GIT_FORWARDED, GIT_RELAYED];
    assert.deepEqual(
      listed,
      lists.map((names) => [...names].toSorted()),
    );
  });
});
