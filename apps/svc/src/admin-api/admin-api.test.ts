import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import type { WarmStart } from "../cache/policy.ts";
import { createToken } from "../credentials/token-format.ts";
import { repositorySchema } from "./cached-repos.ts";
import { administrationDocument } from "./openapi.ts";
import { mintedTokenSchema, tokenSchema } from "./tokens.ts";

interface ApiResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Record<string, unknown>;
}
interface Sent {
  readonly method?: string;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly raw?: string;
  readonly headers?: Record<string, string>;
}

let administration: TestAdministration;
let admin: string;
let user: string;
before(async () => {
  administration = await startAdministration({
    reach: (name) => (name === "hidden" ? "refused" : name === "old" ? "moved" : "readable"),
  });
  admin = await administration.session("root", "admin");
  user = await administration.session("alice", "user");
});
after(async () => administration.stop());

async function send(path: string, sent: Sent = {}): Promise<ApiResponse> {
  const token = "token" in sent ? sent.token : admin;
  const content = sent.raw ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body));
  const response = await fetch(administration.url + path, {
    method: sent.method ?? (content === undefined ? "GET" : "POST"),
    redirect: "manual",
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(content === undefined ? {} : { "content-type": "application/json" }),
      ...sent.headers,
    },
    ...(content === undefined ? {} : { body: content }),
  });
  const text = await response.text();
  const isJson = (response.headers.get("content-type") ?? "").includes("json");
  const json = isJson ? (JSON.parse(text) as Record<string, unknown>) : {};
  return { status: response.status, headers: response.headers, text, json };
}

let names = 0;
async function listed(body: Record<string, unknown> = {}): Promise<Record<string, unknown> & { id: string }> {
  const response = await send("/api/cached-repos", { body: { owner: "acme", name: `r${++names}`, ...body } });
  assert.equal(response.status, 201, response.text);
  return response.json as Record<string, unknown> & { id: string };
}
const pointers = (response: ApiResponse): unknown[] =>
  ((response.json["errors"] ?? []) as { pointer: string }[]).map(({ pointer }) => pointer);

describe("POST /api/cached-repos", () => {
  it("gives 201 with Location, ETag and the record with its defaults [svc 6.1 11.1]", async () => {
    const response = await send("/api/cached-repos", { body: { owner: "acme", name: "first" } });
    assert.equal(response.status, 201);
    const record = repositorySchema.parse(response.json);
    assert.match(record.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    assert.deepEqual([record.enabled, record.timeout_seconds, record.max_cache_size_mb], [true, 30, null]);
    assert.match(
      response.headers.get("location") ?? "",
      new RegExp(`^http.*/api/cached-repos/${record.id}$`),
    );
    assert.equal(response.headers.get("etag"), '"1"');
    assert.equal(administration.repositories.find("ACME", "First")?.id, record.id);
  });

  it("takes every optional field, and null as not given [svc 6.1]", async () => {
    const record = await listed({ enabled: false, timeout_seconds: 3600, max_cache_size_mb: 1 });
    assert.deepEqual(
      [record["enabled"], record["timeout_seconds"], record["max_cache_size_mb"]],
      [false, 3600, 1],
    );
    const plain = await listed({ timeout_seconds: null, max_cache_size_mb: null });
    assert.deepEqual([plain["timeout_seconds"], plain["max_cache_size_mb"]], [30, null]);
  });

  it("is 409 for a repository that is listed, in any case of letters [svc 6.1]", async () => {
    await listed({ name: "Twice" });
    const response = await send("/api/cached-repos", { body: { owner: "ACME", name: "twice" } });
    assert.equal(response.status, 409);
    assert.equal(response.json["message"], "ACME/twice is listed already");
  });

  it("?check=true asks the code host", async () => {
    const ask = async (name: string): Promise<number> =>
      (await send("/api/cached-repos?check=true", { body: { owner: "acme", name } })).status;
    assert.equal(await ask("hidden"), 422);
    assert.equal(await ask("old"), 422);
    assert.equal(await ask("there"), 201);
  });

  const wrong: [name: string, body: unknown, status: number, where: string[]][] = [
    ["no fields", {}, 422, ["/owner", "/name"]],
    ["an empty owner", { owner: "", name: "a" }, 422, ["/owner"]],
    ["a number as owner", { owner: 5, name: "a" }, 422, ["/owner"]],
    ["a slash", { owner: "a/b", name: "c" }, 422, ["/owner"]],
    ["dots", { owner: "..", name: "." }, 422, ["/owner", "/name"]],
    ["an owner of the cache's own", { owner: "_responses", name: "a" }, 422, ["/owner"]],
    ["a .git ending", { owner: "a", name: "b.git" }, 422, ["/name"]],
    ["control characters", { owner: "a\u0000", name: "b\n" }, 422, ["/owner", "/name"]],
    ["a long name", { owner: "a", name: "x".repeat(101) }, 422, ["/name"]],
    ["timeout 0", { owner: "a", name: "b", timeout_seconds: 0 }, 422, ["/timeout_seconds"]],
    ["timeout 3601", { owner: "a", name: "b", timeout_seconds: 3601 }, 422, ["/timeout_seconds"]],
    ["timeout 1.5", { owner: "a", name: "b", timeout_seconds: 1.5 }, 422, ["/timeout_seconds"]],
    ["timeout as text", { owner: "a", name: "b", timeout_seconds: "30" }, 422, ["/timeout_seconds"]],
    ["limit 0", { owner: "a", name: "b", max_cache_size_mb: 0 }, 422, ["/max_cache_size_mb"]],
    ["limit too large", { owner: "a", name: "b", max_cache_size_mb: 1_048_577 }, 422, ["/max_cache_size_mb"]],
    ["limit negative", { owner: "a", name: "b", max_cache_size_mb: -1 }, 422, ["/max_cache_size_mb"]],
    ["enabled as text", { owner: "a", name: "b", enabled: "yes" }, 422, ["/enabled"]],
    ["an unknown field", { owner: "a", name: "b", size: 1 }, 400, ["/size"]],
    ["an id of the caller's", { owner: "a", name: "b", id: "x" }, 400, ["/id"]],
    ["a list", [], 400, []],
    ["a text", "x", 400, []],
    ["null", null, 400, []],
  ];
  for (const [name, body, status, where] of wrong) {
    it(`refuses ${name}`, async () => {
      const response = await send("/api/cached-repos", { body });
      assert.equal(response.status, status, response.text);
      assert.equal(response.headers.get("content-type"), "application/problem+json");
      assert.equal(response.json["message"], response.json["detail"]);
      assert.deepEqual(pointers(response), where);
    });
  }

  it("names an unknown field [svc 10.8]", async () => {
    const response = await send("/api/cached-repos", { body: { owner: "a", name: "b", enabeld: true } });
    assert.equal(response.json["message"], 'Unknown field: "enabeld"');
  });
});

describe("a request body", () => {
  const path = "/api/cached-repos";
  const body = JSON.stringify({ owner: "a", name: "b" });

  it("of another type is 415 [svc 10.9]", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]) {
      assert.equal((await send(path, { raw: body, headers: { "content-type": type } })).status, 415, type);
    }
  });

  it("that is not JSON is 400, and is not quoted", async () => {
    for (const raw of ['{"owner": planted-secret', "", "\u0000"]) {
      const response = await send(path, { raw });
      assert.equal(response.status, 400);
      assert.doesNotMatch(response.text, /planted/);
    }
  });

  it("over 1 MiB is 413, with and without a length [svc 11.7]", async () => {
    const huge = JSON.stringify({ owner: "a".repeat(1024 * 1024), name: "b" });
    assert.equal((await send(path, { raw: huge })).status, 413);
    const response = await fetch(administration.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: new Blob([huge]).stream(),
      duplex: "half",
    });
    assert.equal(response.status, 413);
  });

  it("that is not UTF-8 is 400 [svc 10.9]", async () => {
    const response = await fetch(administration.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: Buffer.from([0x22, 0xff, 0x22]),
    });
    assert.equal(response.status, 400);
  });
});

describe("GET /api/cached-repos", () => {
  it("is a bare array ordered by owner and name [svc 6.2]", async () => {
    await listed({ owner: "Zed", name: "a" });
    await listed({ owner: "abc", name: "a" });
    const response = await send("/api/cached-repos");
    const records = z.array(repositorySchema).parse(response.json);
    const keys = records.map(({ owner, name }) => `${owner}/${name}`.toLowerCase());
    assert.deepEqual(keys, keys.toSorted());
    assert.equal(response.headers.get("link"), null);
  });

  it("pages with limit and Link, over everything once", async () => {
    const all = ((await send("/api/cached-repos")).json as unknown as { id: string }[]).map(({ id }) => id);
    const seen: string[] = [];
    let path: string | undefined = "/api/cached-repos?limit=4";
    while (path !== undefined) {
      const response: ApiResponse = await send(path);
      const page = response.json as unknown as { id: string }[];
      assert.ok(page.length <= 4);
      seen.push(...page.map(({ id }) => id));
      const next = /<https?:\/\/[^/]+([^>]+)>; rel="next"/.exec(response.headers.get("link") ?? "");
      path = next?.[1];
    }
    assert.deepEqual(seen, all);
  });

  it("refuses a cursor that no page gave [svc 10.9]", async () => {
    const cursors = ["A".repeat(5000), "Y".repeat(5000), Buffer.from("a b").toString("base64url"), ""];
    for (const cursor of cursors) {
      for (const path of ["cached-repos", "sessions", "admin-tokens", "tokens", "audit"]) {
        const response = await send(`/api/${path}?limit=1&cursor=${cursor}`);
        assert.equal(response.status, 400, `${path} ${cursor.slice(0, 20)}`);
        assert.match(String(response.json["detail"]), /"cursor": must be from the Link header/);
      }
      const page = await send(`/admin/tokens?cursor=${cursor}`);
      assert.equal(page.status, 400);
    }
  });

  it("refuses parameters that are wrong, unknown or repeated", async () => {
    const repeated = ["limit=1&limit=2", "limit=1&limit=1"];
    for (const query of ["limit=0", "limit=1001", "limit=x", "cursor=%2e%2e", "color=red", ...repeated]) {
      assert.equal((await send(`/api/cached-repos?${query}`)).status, 400, query);
    }
  });
});

describe("fields that are given twice", () => {
  it("are refused with 400 and named, in JSON at any depth and in forms [svc 10.9]", async () => {
    const rows: [path: string, raw: string, pointer: string][] = [
      ["/api/cached-repos", '{"owner":"acme","name":"one","name":"two"}', "/name"],
      [
        "/api/tokens",
        '{"repository":"a/b","scopes":"contents:read","scopes":"*:write","duration":"1h"}',
        "/scopes",
      ],
      [
        "/api/scopes/explain",
        '{"scopes":"contents:read","repositories":["a/b"],"graphql":{"query":"{a}","variables":{"v":1,"v":2}}}',
        "/graphql/variables/v",
      ],
      ["/auth/test-login", '{"username":"ann","role":"user","role":"admin"}', "/role"],
    ];
    for (const [path, raw, pointer] of rows) {
      const response = await send(path, { raw });
      assert.equal(response.status, 400, path);
      assert.equal(response.json["code"], "repeated_field");
      assert.equal(response.json["detail"], `Field "${pointer.slice(1)}": given more than once`);
      assert.deepEqual(pointers(response), [pointer]);
    }
    assert.equal(administration.repositories.find("acme", "one"), undefined);
    for (const path of ["/auth/device/code", "/auth/device/token"]) {
      const response = await send(path, {
        raw: "client_id=good&client_id=other&grant_type=x",
        headers: { "content-type": "application/x-www-form-urlencoded" },
      });
      assert.equal(response.status, 400, path);
      assert.equal(response.json["error"], "invalid_request");
      assert.match(String(response.json["error_description"]), /"client_id": given more than once/);
    }
  });
});

describe("warming by hand", () => {
  it("gives 202 when it began, and 409 with the missing setting when it cannot [svc 6.5]", async () => {
    const responses = new Map<string, WarmStart>([
      ["org/yes", "started"],
      ["org/off", "not_cached"],
    ]);
    const own = await startAdministration({
      warm: (name) => responses.get(name) ?? "no_credential",
    });
    try {
      const token = await own.session("ada", "admin");
      const headers = { Authorization: `Bearer ${token}` };
      const post = async (id: string): Promise<Response> =>
        fetch(`${own.url}/api/cached-repos/${id}/warm`, { method: "POST", headers });
      const codes: unknown[] = [];
      for (const name of ["yes", "off", "none"]) {
        const record = await own.repositories.add({
          owner: "org",
          name,
          enabled: true,
          timeoutSeconds: undefined,
          maxCacheSizeMb: undefined,
        });
        const response = await post(record.id);
        const body = response.status === 202 ? {} : ((await response.json()) as Record<string, string>);
        codes.push([response.status, body["code"]]);
        if (name === "none") assert.match(body["hint"] ?? "", /SVC_CACHE_SERVICE_TOKEN/);
      }
      assert.deepEqual(codes, [
        [202, undefined],
        [409, "cannot_warm"],
        [409, "cannot_warm"],
      ]);
      assert.equal((await post("0198-no-such")).status, 404);
    } finally {
      await own.stop();
    }
  });
});

describe("one cached repository", () => {
  it("PATCH changes the given fields immediately [svc 6.3]", async () => {
    const { id, name } = await listed();
    const response = await send(`/api/cached-repos/${id}`, {
      method: "PATCH",
      body: { enabled: false, timeout_seconds: 600, max_cache_size_mb: 2048 },
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("etag"), '"2"');
    assert.deepEqual(administration.repositories.find("acme", String(name)), {
      id,
      owner: "acme",
      name,
      enabled: false,
      timeoutSeconds: 600,
      maxCacheSizeMb: 2048,
    });
    assert.equal(
      (await send(`/api/cached-repos/${id}`, { method: "PATCH", body: { enabled: true } })).json["enabled"],
      true,
    );
  });

  it("PATCH: limit 0 clears it, null resets both [svc 6.3 11.2]", async () => {
    const { id } = await listed({ timeout_seconds: 60, max_cache_size_mb: 5 });
    const patch = async (body: unknown): Promise<Record<string, unknown>> =>
      (await send(`/api/cached-repos/${id}`, { method: "PATCH", body })).json;
    assert.equal((await patch({ max_cache_size_mb: 0 }))["max_cache_size_mb"], null);
    assert.equal((await patch({ max_cache_size_mb: 7 }))["max_cache_size_mb"], 7);
    const reset = await patch({ max_cache_size_mb: null, timeout_seconds: null });
    assert.deepEqual([reset["max_cache_size_mb"], reset["timeout_seconds"]], [null, 30]);
  });

  it("PATCH refuses wrong values, and owner and name", async () => {
    const { id } = await listed();
    for (const [body, status] of [
      [{ timeout_seconds: 0 }, 422],
      [{ timeout_seconds: 3601 }, 422],
      [{ max_cache_size_mb: -1 }, 422],
      [{ enabled: null }, 422],
      [{ owner: "x" }, 400],
      [[], 400],
    ] as const) {
      assert.equal((await send(`/api/cached-repos/${id}`, { method: "PATCH", body })).status, status);
    }
  });

  it("PATCH and DELETE honour If-Match", async () => {
    const { id } = await listed();
    const path = `/api/cached-repos/${id}`;
    const patch = async (tag: string, enabled: boolean): Promise<number> =>
      (await send(path, { method: "PATCH", body: { enabled }, headers: { "if-match": tag } })).status;
    assert.equal(await patch('"2"', false), 412);
    assert.equal(await patch('"1"', false), 200);
    assert.equal(await patch('"1"', true), 412);
    assert.equal(await patch('"9", "2"', true), 200);
    assert.equal(await patch("*", false), 200);
    assert.equal((await send(path, { method: "DELETE", headers: { "if-match": '"1"' } })).status, 412);
    assert.equal((await send(path, { method: "DELETE", headers: { "if-match": '"4"' } })).status, 204);
  });

  it("DELETE removes the record and its data, and is 404 the second time [svc 6.4]", async () => {
    const { id, name } = await listed();
    assert.equal((await send(`/api/cached-repos/${id}`, { method: "DELETE" })).status, 204);
    assert.equal(administration.repositories.find("acme", String(name)), undefined);
    assert.ok(administration.purged.includes(`acme/${String(name)}`));
    assert.equal((await send(`/api/cached-repos/${id}`, { method: "DELETE" })).status, 404);
    await listed({ name });
  });

  it("purge removes the data and keeps the record [svc 6.5]", async () => {
    const { id, name } = await listed();
    assert.equal((await send(`/api/cached-repos/${id}/purge`, { method: "POST" })).status, 202);
    assert.ok(administration.purged.includes(`acme/${String(name)}`));
    assert.equal((await send(`/api/cached-repos/${id}`)).status, 200);
  });

  it("an id that is not there is 404 for every method", async () => {
    for (const method of ["GET", "PATCH", "DELETE"]) {
      const sent = { method, ...(method === "PATCH" ? { body: {} } : {}) };
      assert.equal((await send("/api/cached-repos/none", sent)).status, 404, method);
    }
  });
});

describe("paths and methods", () => {
  it("another method is 405 with Allow [svc 10.11]", async () => {
    const response = await send("/api/cached-repos", { method: "PUT", body: {} });
    assert.equal(response.status, 405);
    assert.equal(response.headers.get("allow"), "GET, POST, HEAD");
    assert.equal((await send("/api/openapi.json", { method: "DELETE" })).headers.get("allow"), "GET, HEAD");
  });

  it("another path is 404 as a problem [svc 10.11]", async () => {
    const response = await send("/api/none");
    assert.equal(response.status, 404);
    assert.equal(response.json["code"], "no_such_path");
  });

  it("every response carries the security headers", async () => {
    for (const path of ["/healthz", "/admin", "/api/none", "/api/cached-repos"]) {
      const { headers } = await send(path);
      assert.match(headers.get("content-security-policy") ?? "", /default-src 'self'/, path);
      assert.equal(headers.get("x-content-type-options"), "nosniff", path);
      assert.equal(headers.get("cache-control"), "no-store", path);
    }
  });

  it("health and readiness need nothing [svc 6.12]", async () => {
    assert.equal((await send("/healthz", { token: undefined })).text, "ok\n");
    assert.equal((await send("/readyz", { token: undefined })).status, 200);
  });

  it("metrics on the main port need an admin [svc 6.10]", async () => {
    assert.equal((await send("/metrics", { token: undefined })).status, 401);
    assert.equal((await send("/metrics", { token: user })).status, 403);
    assert.match((await send("/metrics")).text, /svc_build_info/);
  });
});

describe("who may administer", () => {
  it("missing and unknown tokens are 401 with a challenge, other kinds 403", async () => {
    for (const [token, status] of [
      [undefined, 401],
      ["x", 401],
      [createToken("session").reveal(), 401],
      [createToken("proxy").reveal(), 403],
      [createToken("agent").reveal(), 403],
      [user, 403],
      [admin, 200],
    ] as const) {
      const response = await send("/api/cached-repos", { token });
      assert.equal(response.status, status);
      assert.equal(response.headers.has("www-authenticate"), status === 401);
    }
  });

  it("a cookie session reads, and changes only from pages of the service [svc 8.4]", async () => {
    const cookie = `a=b; svc_session=${admin}`;
    assert.equal((await send("/api/cached-repos", { token: undefined, headers: { cookie } })).status, 200);
    const change = async (headers: Record<string, string>): Promise<number> =>
      (
        await send("/api/cached-repos", {
          token: undefined,
          body: { owner: "cookie", name: `c${++names}` },
          headers: { cookie, ...headers },
        })
      ).status;
    assert.equal(await change({}), 403);
    assert.equal(await change({ origin: "http://evil.example" }), 403);
    assert.equal(await change({ origin: "null" }), 403);
    assert.equal(await change({ origin: administration.url }), 201);
  });

  it("the session that logs out is over", async () => {
    const token = await administration.session("leaver", "admin");
    assert.equal((await send("/auth/logout", { method: "POST", token })).status, 204);
    assert.equal((await send("/api/cached-repos", { token })).status, 401);
  });
});

describe("POST /auth/test-login", () => {
  it("gives a session token for any user name and both roles [svc 6.9]", async () => {
    const response = await send("/auth/test-login", {
      token: undefined,
      body: { username: "Zoë ☃", role: "admin" },
    });
    assert.equal(response.status, 200);
    assert.match(String(response.json["session_token"]), /^svcr_/);
    assert.equal(
      (await send("/api/cached-repos", { token: String(response.json["session_token"]) })).status,
      200,
    );
  });

  it("takes JSON only, no foreign page, no unknown role, and names what is wrong", async () => {
    const body = { username: "x", role: "admin" };
    const status = async (sent: Sent): Promise<number> =>
      (await send("/auth/test-login", { token: undefined, ...sent })).status;
    assert.equal(await status({ raw: JSON.stringify(body), headers: { "content-type": "text/plain" } }), 415);
    assert.equal(await status({ body, headers: { origin: "http://evil.example" } }), 403);
    assert.equal(await status({ body: { ...body, role: "root" } }), 422);
    assert.equal(await status({ body: { role: "admin" } }), 422);
    assert.equal(await status({ body: { username: " ", role: "admin" } }), 422);
    assert.equal(await status({ body: { username: "a\u0007", role: "admin" } }), 422);
    assert.equal(await status({ body: { ...body, password: "x" } }), 400);
  });

  it("is not there outside development mode, and neither is the login form [svc 6.9]", async () => {
    const production = await startAdministration({ developmentMode: false });
    const response = await fetch(`${production.url}/auth/test-login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "x", role: "admin" }),
    });
    assert.equal(response.status, 404);
    assert.equal((await fetch(`${production.url}/admin/login`, { method: "POST" })).status, 404);
    assert.doesNotMatch(await (await fetch(`${production.url}/admin`)).text(), /<form/);
    await production.stop();
  });
});

describe("requests that are not right as such", () => {
  const page = async (path: string, method: string, type: string, body?: string): Promise<number> => {
    const headers = { cookie: `svc_session=${admin}`, origin: administration.url, "content-type": type };
    const sent = { method, headers, redirect: "manual" as const, ...(body === undefined ? {} : { body }) };
    return (await fetch(administration.url + path, sent)).status;
  };
  const form = "application/x-www-form-urlencoded";

  it("pages show them with the status of the API, not as an upstream fault", async () => {
    assert.equal(await page("/admin/repositories", "POST", "application/json", "{}"), 415);
    assert.equal(await page("/admin/repositories", "POST", form, "a".repeat(65 * 1024)), 413);
    assert.equal(await page("/admin/login", "POST", "text/plain", "username=x"), 415);
  });

  it("health, readiness and metrics take GET only", async () => {
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      const response = await fetch(administration.url + path, { method: "POST" });
      assert.equal(response.status, 405);
      assert.equal(response.headers.get("allow"), "GET, HEAD");
    }
  });
});

describe("development mode", () => {
  it("answers only loopback names and the base address", async () => {
    const { request } = await import("node:http");
    const status = async (host: string): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        request(`${administration.url}/healthz`, { headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end();
      });
    assert.equal(await status("localhost:1"), 200);
    assert.equal(await status("[::1]"), 200);
    assert.equal(await status("evil.example"), 421);
    assert.equal(await status("localhost.evil.example"), 421);
  });
});

describe("tokens", () => {
  it("POST makes a token for any user, and shows its value once [svc 6.6]", async () => {
    const response = await send("/api/tokens", {
      token: user,
      body: {
        repository: "acme/x",
        scopes: "contents:read",
        duration: "1h30m",
        description: "ci",
        session_id: "r1",
      },
    });
    assert.equal(response.status, 201);
    const minted = mintedTokenSchema.parse(response.json);
    assert.equal(Date.parse(minted.expires_at ?? "") - Date.parse(minted.created_at), 5_400_000);
    assert.deepEqual(minted.scopes, { contents: "read", metadata: "read" });
    const list = await send("/api/tokens", { token: user });
    assert.doesNotMatch(list.text, new RegExp(minted.token));
    const shown = z
      .array(tokenSchema)
      .parse(list.json)
      .find(({ id }) => id === minted.id);
    assert.equal(shown?.token_start, minted.token.slice(0, 12));
    assert.equal((await send(`/api/tokens/${minted.id}`, { token: user })).json["session_id"], "r1");
    assert.equal((await send(`/api/tokens/${minted.id}`, { method: "DELETE", token: user })).status, 204);
    assert.equal((await send(`/api/tokens/${minted.id}`, { method: "DELETE", token: user })).status, 404);
  });

  it("a leaked one is revoked by value by any user [svc 6.7]", async () => {
    const minted = await send("/api/tokens", {
      body: { repository: "acme/x", scopes: "contents:read", duration: "1h" },
    });
    const revoke = async (token: unknown): Promise<number> =>
      (await send("/api/tokens/revoke", { token: user, body: { token } })).status;
    assert.equal(await revoke(minted.json["token"]), 204);
    assert.equal((await send(`/api/tokens/${String(minted.json["id"])}`)).status, 404);
    assert.equal(await revoke(minted.json["token"]), 204);
    assert.equal(await revoke(createToken("proxy").reveal()), 404);
  });

  const good = { repository: "acme/x", scopes: "contents:read", duration: "1h" };
  const wrong: [name: string, body: unknown, status: number, where: string[]][] = [
    ["nothing", {}, 422, ["/scopes", "/duration", "/repository"]],
    ["no repository", { scopes: "contents:read", duration: "1h" }, 422, ["/repository"]],
    ["an unknown scope", { ...good, scopes: "content:read" }, 422, ["/scopes"]],
    ["a duration too long", { ...good, duration: "8d" }, 422, ["/duration"]],
    ["fields of agent tokens", { ...good, app_id: "1" }, 422, ["/app_id"]],
    ["an unknown type", { ...good, type: "root" }, 422, ["/type"]],
    ["an unknown field", { ...good, scope: "x" }, 400, ["/scope"]],
    ["a repository that cannot be reached", { ...good, repository: "acme/hidden" }, 422, ["/repository"]],
    ["an agent token by a user", { ...good, type: "agent" }, 403, []],
  ];
  for (const [name, body, status, where] of wrong) {
    it(`POST refuses ${name}`, async () => {
      const response = await send("/api/tokens", { token: user, body });
      assert.equal(response.status, status, response.text);
      assert.deepEqual(pointers(response), where);
    });
  }

  it("?check=false does not ask the code host; an agent token without an app is 409", async () => {
    const hidden = { ...good, repository: "acme/hidden" };
    assert.equal((await send("/api/tokens?check=false", { token: user, body: hidden })).status, 201);
    const agent = await send("/api/tokens", { body: { ...good, type: "agent" } });
    assert.equal(agent.status, 409);
    assert.match(String(agent.json["message"]), /registered code-host app/);
  });
});

describe("GET /api/openapi.json", () => {
  type Document = {
    paths: Record<string, Record<string, { operationId: string }>>;
    components: {
      schemas: Record<
        string,
        {
          additionalProperties: boolean;
          required: string[];
          properties: Record<string, { anyOf?: { minimum?: number; maximum?: number }[] }>;
        }
      >;
    };
  };

  it("describes exactly the operations that are served [svc 6.13]", async () => {
    const document = (await send("/api/openapi.json", { token: undefined })).json as unknown as Document;
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(
        ([method, { operationId }]) => `${method.toUpperCase()} ${path} ${operationId}`,
      ),
    );
    const served = administration.operations.map(({ method, path, id }) => `${method} ${path} ${id}`);
    assert.deepEqual(described.toSorted(), served.toSorted());
    assert.deepEqual(document, administrationDocument(administration.operations, "0.0.0-test"));
  });

  it("the type of a problem is the place of its code's status and title", async () => {
    const document = (await send("/api/openapi.json")).json;
    for (const path of ["/api/cached-repos/x", "/api/cached-repos?limit=x", "/api/none"]) {
      const { json: problem, status } = await send(path);
      const [place = "", pointer = ""] = String(problem["type"]).split("#");
      assert.equal(place, "/api/openapi.json");
      const row = pointer
        .split("/")
        .slice(1)
        .reduce((at, name) => at[name] as typeof document, document);
      assert.deepEqual(row, { status, title: problem["title"] }, path);
      assert.equal(problem["status"], status, path);
    }
  });

  it("its access is right: without a credential all but public operations are 401", async () => {
    for (const { method, path, access, id } of administration.operations) {
      const { status } = await send(path.replace("{id}", "x"), { method, token: undefined });
      assert.equal(status === 401, access !== "public", id);
      if (access === "admin") {
        assert.equal((await send(path.replace("{id}", "x"), { method, token: user })).status, 403, id);
      }
    }
  });

  it("its limits are the effective limits [svc 11.1]", async () => {
    const document = (await send("/api/openapi.json")).json as unknown as Document;
    const schema = document.components.schemas["NewCachedRepository"];
    assert.ok(schema !== undefined);
    assert.equal(schema.additionalProperties, false);
    assert.deepEqual(schema.required, ["owner", "name"]);
    for (const field of ["timeout_seconds", "max_cache_size_mb"]) {
      const { minimum = 0, maximum = 0 } = schema.properties[field]?.anyOf?.[0] ?? {};
      const cases: [value: number, status: number][] = [
        [minimum - 1, 422],
        [minimum, 201],
        [maximum, 201],
        [maximum + 1, 422],
      ];
      for (const [value, status] of cases) {
        const sent = { owner: "bounds", name: `b${++names}`, [field]: value };
        assert.equal((await send("/api/cached-repos", { body: sent })).status, status, `${field} ${value}`);
      }
    }
  });
});

describe("logs of the administration", () => {
  it("hold no token and no credential", async () => {
    const response = await send("/auth/test-login", {
      token: undefined,
      body: { username: "tester", role: "admin", host_token: "planted-host-token" },
    });
    const session = String(response.json["session_token"]);
    await send("/api/tokens", {
      token: session,
      body: { repository: "planted-host-token", scopes: "", duration: "" },
    });
    await send("/api/tokens/revoke", { token: session, body: { token: "svcx_planted" } });
    assert.doesNotMatch(administration.log(), /planted|svc[rxa]_/);
  });
});
