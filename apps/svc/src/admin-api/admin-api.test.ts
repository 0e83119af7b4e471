import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { fieldPath } from "../field-path.ts";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import { createToken } from "../credentials/token-format.ts";
import { pointers, startApiClient, type ApiClient, type Sent } from "./api-client.test-kit.ts";
import { administrationDocument } from "./openapi.ts";
import { mintedTokenSchema, tokenSchema } from "./tokens.ts";

let administration: TestAdministration;
let admin: string;
let user: string;
let send: ApiClient["send"];
before(async () => {
  ({ administration, admin, user, send } = await startApiClient({
    reach: (name) => (name === "hidden" ? "refused" : "readable"),
  }));
});
after(async () => administration.stop());

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
      assert.equal(response.json["detail"], `Field "${fieldPath(pointer)}": given more than once`);
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
    let cookies = 0;
    const cookie = `a=b; svc_session=${admin}`;
    assert.equal((await send("/api/cached-repos", { token: undefined, headers: { cookie } })).status, 200);
    const change = async (headers: Record<string, string>): Promise<number> =>
      (
        await send("/api/cached-repos", {
          token: undefined,
          body: { owner: "cookie", name: `c${++cookies}` },
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
    let bounds = 0;
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
        const sent = { owner: "bounds", name: `b${++bounds}`, [field]: value };
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
