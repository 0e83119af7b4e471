import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { STRICT_CSP } from "@devplat/web-kit";
import { parseFields, type SecretStore } from "@devplat/secret-store";
import { run } from "@devplat/testkit";
import type { RouteParts } from "./routes/route-parts.ts";
import { MemoryRemotes, remoteView } from "../forwards/memory-remotes.test-kit.ts";
import { parseListenAddress } from "./listen-address.ts";
import { ruleView } from "./memory-view.test-kit.ts";
import { routes } from "./routes/routes.ts";
import { GOOD_TOKEN } from "./login.test-kit.ts";
import { startTestServer, type Answer, type RequestOptions, type TestServer } from "./server.test-kit.ts";

/** One test for each row of the contract's tables; the details of each have their own tests elsewhere. */

const CONFIGURATION = "store: { driver: embedded }\nenrolments: {a: {engine: ssh}, b: {engine: ssh}}";
const TOKEN = "hvs.held";

let server: TestServer;
before(async () => {
  server = await startTestServer({
    configuration: CONFIGURATION,
    editablePaths: ["tools"],
    token: TOKEN,
    remotes: new MemoryRemotes([remoteView("build")]),
    texts: { login: "", secretView: "The **notes**." },
  });
  server.view.set({ rules: [ruleView("npm")] });
  await server.store.write("tools/there", parseFields('{"a":1}'));
  await server.store.write("elsewhere/x", parseFields('{"a":1}'));
});
after(() => server.stop());

/** A change over the JSON API, with its token. */
async function change(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { token } = JSON.parse((await server.send("/api/v1/csrf")).body) as { token: string };
  const headers = { "X-CSRF-Token": token, "Content-Type": "application/json", ...options.headers };
  return await server.send(path, { ...options, method, headers });
}
const fields = (json: string): RequestOptions => ({ body: `{"fields":${json}}` });
const own = (): RequestOptions => ({ method: "POST", headers: { Origin: server.url } });
const json = ({ body }: Answer): Record<string, unknown> => JSON.parse(body) as Record<string, unknown>;

describe("endpoints: JSON API", () => {
  it("GET /api/v1/status: server, auth, token TTL, sync, certificate-bootstrap state [agent 24.1]", async () => {
    const status = json(await server.send("/api/v1/status"));
    for (const key of [
      "version",
      "authenticated",
      "auth",
      "sync",
      "bootstrap",
      "store",
      "username",
      "rules",
    ]) {
      assert.ok(key in status, key);
    }
    assert.equal((status["auth"] as { token_ttl_seconds: number }).token_ttl_seconds, 3600);
    assert.deepEqual(status["bootstrap"], { active: false, method: null });
  });

  it("GET /api/v1/status: from memory, no request to the store [agent 24.2]", async () => {
    // A store that fails every request.
    const store = new Proxy({}, { get: () => () => assert.fail("the store was asked") }) as SecretStore;
    await using alone = await startTestServer({ store });
    assert.equal((await alone.send("/api/v1/status")).status, 200);
    assert.equal((await alone.send("/api/v1/rules")).status, 200);
    assert.equal((await alone.send("/ui/")).status, 200);
  });

  it("GET /api/v1/rules: configured sync rules [agent 24.4]", async () => {
    const { rules } = json(await server.send("/api/v1/rules")) as { rules: { name: string }[] };
    assert.deepEqual(
      rules.map(({ name }) => name),
      ["npm"],
    );
  });

  it("GET /api/v1/token: the current store token; authenticated sessions only [agent 24.5]", async () => {
    assert.equal(json(await server.send("/api/v1/token"))["token"], TOKEN);
    await using locked = await startTestServer({ requireUnlock: true, token: TOKEN });
    assert.equal((await locked.send("/api/v1/token")).status, 401);
  });

  it("GET /api/v1/secrets/{path}: lists a folder or returns a secret; reveal: fields [agent 24.6]", async () => {
    assert.deepEqual(json(await server.send("/api/v1/secrets/tools/")), { path: "tools/", keys: ["there"] });
    assert.deepEqual(json(await server.send("/api/v1/secrets/tools/there"))["fields"], ["a"]);
    assert.deepEqual(json(await server.send("/api/v1/secrets/tools/there?reveal=true"))["fields"], { a: 1 });
  });

  it("POST /api/v1/secrets/{path}: creates; 409 if exists; CSRF token required [agent 24.7]", async () => {
    assert.equal((await change("POST", "/api/v1/secrets/tools/new", fields('{"a":"b"}'))).status, 201);
    assert.equal((await change("POST", "/api/v1/secrets/tools/new", fields('{"a":"b"}'))).status, 409);
    const bare = { method: "POST", headers: { "Content-Type": "application/json" }, ...fields(`{"a":"1"}`) };
    assert.equal((await server.send("/api/v1/secrets/tools/other", bare)).status, 403);
  });

  it("PUT /api/v1/secrets/{path}: replaces the document; 404 if absent; CSRF token [agent 24.8]", async () => {
    assert.equal((await change("PUT", "/api/v1/secrets/tools/there", fields('{"b":2}'))).status, 200);
    assert.deepEqual(json(await server.send("/api/v1/secrets/tools/there"))["fields"], ["b"]);
    assert.equal((await change("PUT", "/api/v1/secrets/tools/absent", fields('{"b":2}'))).status, 404);
    assert.equal((await server.send("/api/v1/secrets/tools/there", { method: "PUT" })).status, 403);
  });

  it("DELETE /api/v1/secrets/{path}: deletes all versions; CSRF token required [agent 24.9]", async () => {
    await server.store.write("tools/gone", parseFields('{"a":1}'));
    assert.equal((await server.send("/api/v1/secrets/tools/gone", { method: "DELETE" })).status, 403);
    assert.equal((await change("DELETE", "/api/v1/secrets/tools/gone")).status, 200);
    await assert.rejects(server.store.metadata("tools/gone"), { code: "not_found" });
  });

  it("POST /api/v1/sync: triggers an immediate sync cycle; CSRF token required [agent 24.11]", async () => {
    const cyclesBefore = server.view.cycles;
    assert.equal((await server.send("/api/v1/sync", own())).status, 403);
    assert.equal((await change("POST", "/api/v1/sync")).status, 202);
    assert.equal((await change("POST", "/api/v1/sync?secret=demo%2Fapp")).status, 202);
    assert.equal((await change("POST", "/api/v1/sync?secret=..%2Fapp")).status, 400);
    assert.equal(server.view.cycles, cyclesBefore + 2);
  });

  it("GET /api/v1/csrf: {token} [agent 24.12]", async () => {
    assert.deepEqual(Object.keys(json(await server.send("/api/v1/csrf"))), ["token"]);
  });

  it("a config view exists, and enrolments are in the status, read-only [agent 24.18]", async () => {
    assert.ok("config" in json(await server.send("/api/v1/config")));
    const { enrolments } = json(await server.send("/api/v1/status"));
    assert.deepEqual(
      (enrolments as { key: string }[]).map(({ key }) => key),
      ["a", "b"],
    );
  });
});

describe("endpoints: browser", () => {
  it("GET /: login view, or redirect to /setup/ or /ui/ [agent 25.2]", async () => {
    assert.equal((await server.send("/")).headers.location, "/setup/");
  });

  it("GET /setup/: first-run wizard [agent 25.7]", async () => {
    assert.match((await server.send("/setup/")).body, /Skip the rest/);
  });

  for (const path of ["/login/ldap", "/auth/oidc/start"]) {
    it(`GET ${path}: nothing to do while signed in, so it leads to the start`, async () => {
      assert.equal((await server.send(path)).headers.location, "/");
    });
  }

  it("no route without web.enabled: nothing listens; every POST checks the Origin [agent 25.1]", async () => {
    const { routes: served } = routes({ secrets: {} } as unknown as RouteParts);
    const posts = served.filter(({ method, path }) => method === "POST" && !path.startsWith("/api/"));
    assert.ok(posts.length >= 9, String(posts.length));
    for (const { path } of posts) {
      const target = path.replaceAll("*", "x").replaceAll(/:\w+/g, "x");
      for (const Origin of [undefined, "null", "https://evil.example.test", "http://127.0.0.1:1"]) {
        const headers = Origin === undefined ? {} : { Origin };
        const { status } = await server.send(target, { method: "POST", headers });
        assert.equal(status, 403, `${target} ${Origin}`);
      }
    }
  });
});

describe("pages under /ui/", () => {
  it("/ui/: header with version, state, store link, time, Config, copy-token, Sync Now [agent 26.1]", async () => {
    const { body } = await server.send("/ui/");
    for (const part of [
      /class="version">0\.1\.0</,
      /Connected</,
      /<a class="small" href="https:\/\/vault\.example\.test:8200" rel="noreferrer" target="_blank"/,
      /Updated <time datetime=/,
      /<a href="\/ui\/config\/"/,
      /action="\/ui\/copy-token"/,
      /action="\/ui\/sync"/,
      /The <strong>notes<\/strong>\./,
    ]) {
      assert.match(body, part);
    }
  });

  for (const [path, words] of [
    ["/ui/secrets/", /<h1 class="wrap">Secrets<\/h1>/],
    ["/ui/secrets/tools/there", /version \d/],
    ["/ui/enrolments/", /<h1>Enrolments<\/h1>/],
    ["/ui/enrolments/ssh/a/", /value="start"/],
    ["/ui/rules/", /<h1>Rules<\/h1>/],
    ["/ui/remotes/", /<h1>Remotes<\/h1>/],
    ["/ui/remotes/build/", /<h1 class="wrap">build<\/h1>/],
    ["/ui/agent/", /<h1>SSH agent<\/h1>/],
    ["/ui/config/", /<h1>Effective configuration<\/h1>/],
  ] as const) {
    it(`${path} is served`, async () => {
      const response = await server.send(path);
      assert.equal(response.status, 200);
      assert.match(response.body, words);
    });
  }

  it("/ui/secrets/<key>: the URL is the whole state; an empty path is a create form [agent 26.6]", async () => {
    assert.match((await server.send("/ui/secrets/tools/nothing")).body, /The first field creates the secret/);
  });

  it("an unauthenticated visit to any /ui/ page redirects to / [agent 26.13]", async () => {
    await using out = await startTestServer();
    out.view.set({ status: { authenticated: false } });
    for (const path of [
      "/ui/",
      "/ui/secrets/",
      "/ui/secrets/x",
      "/ui/rules/",
      "/ui/config/",
      "/ui/remotes/",
      "/ui/agent/",
    ]) {
      const { status, headers } = await out.send(path);
      assert.deepEqual([status, headers.location], [303, "/"], path);
    }
  });
});

describe("removed endpoints", () => {
  for (const [method, path, replacement] of [
    ["POST", "/auth/ldap/login", "POST /login/ldap"],
    ["GET", "/auth/ldap/status", "GET /login/ldap"],
    ["POST", "/auth/ldap/mfa", "POST /login/ldap/totp"],
    ["POST", "/auth/token/login", "POST /login/token"],
    ["GET", "/api/v1/enrol", "/setup/ and /ui/enrolments/"],
    ["GET", "/api/v1/enrol/x", "/setup/ and /ui/enrolments/"],
  ] as const) {
    it(`${method} ${path} is 404 and points to ${replacement} [agent 27.1]`, async () => {
      const { status, body } = await server.send(path, method === "POST" ? own() : {});
      assert.equal(status, 404);
      assert.ok(body.includes(`Use ${replacement} instead`), body);
    });
  }
});

describe("request protection", () => {
  it("1: browser POSTs require a present, same-origin Origin header [agent 32.1]", async () => {
    const cyclesBefore = server.view.cycles;
    assert.equal((await server.send("/ui/sync", { method: "POST" })).status, 403);
    assert.equal((await server.send("/ui/sync", own())).status, 303);
    assert.equal(server.view.cycles, cyclesBefore + 1);
  });

  it("2: JSON API mutations require the CSRF handshake; a token is good once [agent 32.2]", async () => {
    const { token } = json(await server.send("/api/v1/csrf")) as { token: string };
    const sync = { method: "POST", headers: { "X-CSRF-Token": token } };
    assert.equal((await server.send("/api/v1/sync", sync)).status, 202);
    assert.equal((await server.send("/api/v1/sync", sync)).status, 403);
  });

  it("3: a listen address that is not loopback is refused [agent 32.3]", () => {
    for (const address of ["0.0.0.0:8200", "[::]:8200", "192.0.2.1:8200", ":8200"]) {
      assert.throws(() => parseListenAddress(address), { code: "listen_refused" });
    }
  });

  it("4: nosniff and policy on pages, API, errors, assets, streams and redirects [agent 32.4]", async () => {
    const asset = /href="(\/static\/kit\.[^"]+)"/.exec((await server.send("/ui/")).body)?.[1] ?? "";
    for (const path of [
      "/",
      "/ui/",
      "/setup/",
      "/api/v1/status",
      "/nothing",
      "/healthz",
      "/metrics",
      asset,
    ]) {
      const { headers } = await server.send(path);
      assert.equal(headers["x-content-type-options"], "nosniff", path);
      assert.equal(headers["content-security-policy"], STRICT_CSP, path);
      assert.equal(headers["referrer-policy"], "same-origin", path);
    }
    const stream = await server.open("/ui/sse");
    assert.equal(stream.headers["x-content-type-options"], "nosniff");
    assert.equal(stream.headers["cache-control"], "no-store");
    stream.destroy();
    assert.match(STRICT_CSP, /^default-src 'self'; frame-ancestors 'none'/);
    assert.doesNotMatch(STRICT_CSP, /unsafe/, "the contract's ceiling is not used: no page needs it");
  });

  it("4: inline scripts are nowhere [agent 32.5]", async () => {
    for (const path of ["/ui/", "/setup/", "/ui/secrets/tools/there", "/ui/enrolments/", "/ui/config/"]) {
      const { body } = await server.send(path);
      assert.doesNotMatch(body, /<script(?![^>]*\bsrc=)|\son\w+="|style="|href="javascript/, path);
    }
  });
});

describe("errors", () => {
  it("POST secret when one exists: 409 [agent 35.1]", async () => {
    assert.equal((await change("POST", "/api/v1/secrets/tools/there", fields(`{"a":"1"}`))).status, 409);
  });

  it("PUT secret when absent: 404 [agent 35.2]", async () => {
    assert.equal((await change("PUT", "/api/v1/secrets/tools/absent", fields(`{"a":"1"}`))).status, 404);
  });

  it("secret mutation outside web.editable_paths: 403, for every stored content [agent 35.3]", async () => {
    for (const method of ["POST", "PUT", "DELETE"]) {
      for (const path of ["elsewhere/x", "elsewhere/new", "toolsx"]) {
        const response = await change(
          method,
          `/api/v1/secrets/${path}`,
          method === "DELETE" ? {} : fields(`{"a":"1"}`),
        );
        assert.deepEqual(
          [response.status, json(response)["code"]],
          [403, "not_editable"],
          `${method} ${path}`,
        );
      }
    }
  });

  it("the routes of mutations exist when no path is configured [agent 24.15]", async () => {
    await using bare = await startTestServer();
    const { token } = json(await bare.send("/api/v1/csrf")) as { token: string };
    const headers = { "X-CSRF-Token": token, "Content-Type": "application/json" };
    const response = await bare.send("/api/v1/secrets/x", {
      method: "POST",
      headers,
      ...fields(`{"a":"1"}`),
    });
    assert.deepEqual([response.status, json(response)["code"]], [403, "not_editable"]);
  });

  it("POST /login/token under certificate auth: 403", async () => {
    await using out = await startTestServer({ login: { kind: "mtls" } });
    out.view.set({ status: { authenticated: false } });
    const headers = { Origin: out.url };
    const response = await out.send("/login/token", { method: "POST", headers, body: `token=${GOOD_TOKEN}` });
    assert.equal(response.status, 403);
  });

  it("browser POST with missing or cross-site Origin: rejected [agent 35.4]", async () => {
    for (const headers of [{}, { Origin: "https://evil.example.test" }] as Record<string, string>[]) {
      const { status, body } = await server.send("/ui/sync", { method: "POST", headers });
      assert.equal(status, 403);
      assert.match(body, /does not come from a page of this daemon/);
    }
  });

  it("UI save with a stale version: refused with an explanation [agent 35.5]", async () => {
    const body = "action=save&version=99&field=%22b%22&name=b&text=x";
    const response = await server.send("/ui/secrets/tools/there", { ...own(), body });
    assert.equal(response.status, 409);
    assert.match(response.body, /has changed since the row was opened/);
  });

  it("non-loopback web.listen: startup refused", () => {
    assert.throws(() => parseListenAddress("10.0.0.1:8200"), { code: "listen_refused" });
  });
});

describe("limits", () => {
  it("secret name when creating in the UI: one segment [agent 35.27]", async () => {
    const response = await server.send("/ui/secrets/tools/", { ...own(), body: "action=new&name=a%2Fb" });
    assert.equal(response.status, 422);
  });

  it("a request body: 1 MiB [agent 35.25]", async () => {
    const document = (size: number): string => `{"fields":{"a":"${"x".repeat(size - 20)}"}}`.padEnd(size);
    const largest = { body: document(1024 * 1024) };
    assert.equal((await change("POST", "/api/v1/secrets/tools/large", largest)).status, 201);
    const larger = { body: document(1024 * 1024 + 1) };
    assert.equal((await change("POST", "/api/v1/secrets/tools/larger", larger)).status, 413);
  });

  // Clients that send the whole body before they read the response, as most do.
  const PYTHON = [
    "import http.client, sys",
    "size, how = int(sys.argv[2]), sys.argv[3]",
    "c = http.client.HTTPConnection(sys.argv[1])",
    "body = b'x' * size",
    "chunks = (body[i:i + 65536] for i in range(0, size, 65536))",
    "c.request('PUT', '/api/v1/secrets/tools/large', body if how == 'length' else chunks)",
    "r = c.getresponse()",
    "print(r.status, r.read().decode())",
  ].join("\n");
  for (const size of [1024 * 1024 + 1, 1_100_000, 6 * 1024 * 1024]) {
    for (const how of ["length", "chunks"]) {
      it(`${size} bytes by ${how}: Python and curl see the 413 [agent 35.25]`, async () => {
        const { host } = new URL(server.url);
        const python = await run("python3", ["-c", PYTHON, host, String(size), how]);
        assert.match(python.stdout, /^413 .*body_too_large/, python.stderr);
        const header = how === "length" ? "Expect:" : "Transfer-Encoding: chunked";
        const curl = await run(
          "curl",
          [
            "--silent",
            "--show-error",
            "--request",
            "PUT",
            "--data-binary",
            "@-",
            "--header",
            header,
            "--header",
            "Expect:",
            `${server.url}/api/v1/secrets/tools/large`,
          ],
          { input: "x".repeat(size) },
        );
        assert.equal(curl.code, 0, curl.stderr);
        assert.match(curl.stdout, /body_too_large/);
      });
    }
  }
});
