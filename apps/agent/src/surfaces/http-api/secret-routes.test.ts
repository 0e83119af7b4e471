import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { SecretStoreError, printJson, type SecretStore } from "@devplat/secret-store";
import {
  startTestServer,
  type Answer,
  type RequestOptions,
  type TestServer,
} from "../web/server.test-kit.ts";

const BASE = "/api/v1/secrets/";
const JSON_TYPE = { "Content-Type": "application/json" };

function code(response: Answer): string {
  return (JSON.parse(response.body) as { code: string }).code;
}

async function change(server: TestServer, path: string, options: RequestOptions): Promise<Answer> {
  const { body } = await server.send("/api/v1/csrf");
  const token = (JSON.parse(body) as { token: string }).token;
  return await server.send(BASE + path, {
    ...options,
    headers: { ...JSON_TYPE, "X-CSRF-Token": token, ...options.headers },
  });
}

/** A DELETE carries no body. */
const bodyOf = (method: string): RequestOptions =>
  method === "DELETE" ? { method } : { method, body: '{"fields":{"a":"1"}}' };

const post = (server: TestServer, path: string, body: string): Promise<Answer> =>
  change(server, path, { method: "POST", body });

describe("the secrets of the JSON API", () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({
      editablePaths: ["tools"],
      enrolmentKeys: ["tools/enrolled"],
      token: "s.token",
    });
  });
  after(() => server.stop());

  it("POST creates (201), GET lists names only, reveal gives the values without loss", async () => {
    const fields = '{"n":9223372036854775808,"e":1e400,"z":-0,"d":1.10,"__proto__":{"b":[true,null]}}';
    const created = await post(server, "tools/numbers", `{"fields":${fields}}`);
    assert.equal(created.status, 201);
    assert.deepEqual(JSON.parse(created.body), { path: "tools/numbers", version: 1 });
    const names = await server.send(`${BASE}tools/numbers`);
    assert.equal(names.body, '{"path":"tools/numbers","version":1,"fields":["n","e","z","d","__proto__"]}');
    assert.equal(names.headers["etag"], '"1"');
    const revealed = await server.send(`${BASE}tools/numbers?reveal=true`);
    assert.equal(revealed.body, `{"path":"tools/numbers","version":1,"fields":${fields}}`);
  });

  it("a trailing slash lists a folder or the root; without it a folder is not found", async () => {
    await post(server, "tools/deep/one", '{"fields":{"a":"1"}}');
    const root = await server.send(BASE);
    assert.deepEqual(JSON.parse(root.body), { path: "", keys: ["tools/"] });
    const folder = await server.send(`${BASE}tools/deep/`);
    assert.deepEqual(JSON.parse(folder.body), { path: "tools/deep/", keys: ["one"] });
    assert.equal((await server.send(`${BASE}tools/deep`)).status, 404);
    assert.equal((await server.send(`${BASE}tools/nothing/`)).status, 404);
  });

  it("POST where a secret exists is 409, and leaves it", async () => {
    await post(server, "tools/once", '{"fields":{"a":"first"}}');
    const again = await post(server, "tools/once", '{"fields":{"a":"second"}}');
    assert.equal(again.status, 409);
    assert.equal(code(again), "exists");
    assert.equal((await server.store.read("tools/once")).fields.get("a"), "first");
  });

  it("of two simultaneous POSTs one succeeds [agent 23.3]", async () => {
    const responses = await Promise.all(
      ["x", "y"].map((v) => post(server, "tools/race", `{"fields":{"a":"${v}"}}`)),
    );
    assert.deepEqual(responses.map(({ status }) => String(status)).toSorted(), ["201", "409"]);
  });

  it("PUT replaces the whole document, and is 404 where there is none", async () => {
    await post(server, "tools/put", '{"fields":{"a":"1","b":"2"}}');
    const put = await change(server, "tools/put", { method: "PUT", body: '{"fields":{"c":3}}' });
    assert.equal(put.status, 200);
    assert.deepEqual(JSON.parse(put.body), { path: "tools/put", version: 2 });
    assert.equal(printJson((await server.store.read("tools/put")).fields), '{"c":3}');
    const absent = await change(server, "tools/absent", { method: "PUT", body: '{"fields":{"a":1}}' });
    assert.equal(absent.status, 404);
    await assert.rejects(server.store.read("tools/absent"), { code: "not_found" });
  });

  it("POST and PUT without a field are refused: 400 [agent 28.15]", async () => {
    await post(server, "tools/filled", '{"fields":{"a":"1"}}');
    for (const [method, path] of [
      ["POST", "tools/empty"],
      ["PUT", "tools/filled"],
    ] as const) {
      const response = await change(server, path, { method, body: '{"fields":{}}' });
      assert.equal(response.status, 400, method);
      assert.equal(code(response), "bad_request");
    }
    await assert.rejects(server.store.read("tools/empty"), { code: "not_found" });
    assert.equal((await server.store.read("tools/filled")).version, 1);
  });

  it("403 for a secret outside the editable folders, also one with a folder's name [agent 28.11]", async () => {
    for (const path of ["tools", "toolsbox"]) {
      const response = await post(server, path, '{"fields":{"a":"1"}}');
      assert.equal(response.status, 403, path);
      assert.equal(code(response), "not_editable");
      await assert.rejects(server.store.read(path), { code: "not_found" });
    }
  });

  for (const header of ["1", '"1"']) {
    it(`If-Match ${header} on PUT is compare-and-set: 409 when stale [agent 24.10]`, async () => {
      const path = `tools/cas-${header.length}`;
      await post(server, path, '{"fields":{"a":"1"}}');
      const put = (): Promise<Answer> =>
        change(server, path, {
          method: "PUT",
          body: '{"fields":{"a":"2"}}',
          headers: { "If-Match": header },
        });
      assert.equal((await put()).status, 200);
      const stale = await put();
      assert.equal(stale.status, 409);
      assert.equal(code(stale), "version_conflict");
    });
  }

  it("If-Match on DELETE is checked; DELETE removes every version [agent 24.10]", async () => {
    await post(server, "tools/gone", '{"fields":{"a":"1"}}');
    const stale = await change(server, "tools/gone", { method: "DELETE", headers: { "If-Match": "7" } });
    assert.equal(stale.status, 409);
    const gone = await change(server, "tools/gone", { method: "DELETE", headers: { "If-Match": "1" } });
    assert.equal(gone.status, 200);
    await assert.rejects(server.store.read("tools/gone", { version: 1 }), { code: "not_found" });
    assert.equal((await change(server, "tools/gone", { method: "DELETE" })).status, 404);
  });

  for (const method of ["POST", "PUT", "DELETE"]) {
    it(`${method} outside web.editable_paths is 403, and of a secret of an enrolment too`, async () => {
      for (const [path, expected] of [
        ["elsewhere/x", "not_editable"],
        ["toolsbox", "not_editable"],
        ["tools/enrolled", "enrolment_owned"],
      ] as const) {
        const refused = await change(server, path, bodyOf(method));
        assert.equal(refused.status, 403, path);
        assert.equal(code(refused), expected);
        await assert.rejects(server.store.read(path), { code: "not_found" });
      }
    });

    it(`${method} needs a CSRF token, which is good once`, async () => {
      const without = await server.send(`${BASE}tools/csrf`, { ...bodyOf(method), headers: JSON_TYPE });
      assert.equal(without.status, 403);
      assert.equal(code(without), "csrf_refused");
      const { token } = JSON.parse((await server.send("/api/v1/csrf")).body) as { token: string };
      const headers = { ...JSON_TYPE, "X-CSRF-Token": token };
      await server.send("/api/v1/sync", { method: "POST", headers });
      const used = await server.send(`${BASE}tools/csrf`, { ...bodyOf(method), headers });
      assert.equal(code(used), "csrf_refused");
    });
  }

  const badBodies: [string, string, number, string][] = [
    ["no JSON", '{"fields":{"password":"hunter2"', 400, "bad_request"],
    ["not an object", "[]", 400, "bad_request"],
    ["fields no object", '{"fields":["hunter2"]}', 400, "bad_request"],
    ["another key", '{"fields":{},"hunter2":1}', 400, "bad_request"],
    ["a key twice", '{"fields":{"hunter2":1,"hunter2":2}}', 400, "bad_request"],
    ["over 1 MiB", `{"fields":{"a":"${"x".repeat(1024 * 1024)}"}}`, 413, "body_too_large"],
  ];
  for (const [name, body, status, expected] of badBodies) {
    it(`a body with a fault is refused and not quoted: ${name} [agent 35.21]`, async () => {
      const refused = await post(server, "tools/bad", body);
      assert.equal(refused.status, status);
      assert.equal(code(refused), expected);
      assert.doesNotMatch(refused.body, /hunter2/);
    });
  }

  it("another content type than application/json is refused [agent 24.14]", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded", ""]) {
      const headers = { "Content-Type": type };
      const refused = await change(server, "tools/type", {
        method: "POST",
        body: '{"fields":{"a":"1"}}',
        headers,
      });
      assert.equal(refused.status, 415);
    }
    const accepted = { "Content-Type": "application/json; charset=utf-8" };
    const created = await change(server, "tools/type", {
      method: "POST",
      body: '{"fields":{"a":"1"}}',
      headers: accepted,
    });
    assert.equal(created.status, 201);
  });

  it("a body that is not UTF-8 is refused", async () => {
    const body = Buffer.from('{"fields":{"a":"\xff"}}', "latin1");
    assert.equal((await change(server, "tools/latin", { method: "POST", body })).status, 400);
  });

  const badPaths = [
    "tools/../other",
    "tools/./x",
    "tools/%2e%2e/x",
    "tools//x",
    "tools/a%2fb",
    "tools/a%5cb",
    "tools/a%00",
    "tools/a%0ab",
    "tools/%ff",
    "tools/%e2%80%8b",
    "tools/%252fx",
    "tools/%",
    `tools/${"x".repeat(1100)}`,
  ];
  for (const path of badPaths) {
    it(`paths are never normalised: ${path.slice(0, 30)} is 400 [agent 24.22]`, async () => {
      assert.equal((await server.send(BASE + path)).status, 400);
      assert.equal((await post(server, path, '{"fields":{"a":"1"}}')).status, 400);
    });
  }

  it("a path that only looks odd is taken exactly as written", async () => {
    const path = "tools/a b?#&+%C3%A9;..=100%";
    const encoded = "tools/a%20b%3F%23%26%2B%25C3%25A9;..=100%25";
    assert.equal((await post(server, encoded, '{"fields":{"a":"1"}}')).status, 201);
    assert.equal((await server.store.read(path)).version, 1);
    assert.equal((JSON.parse((await server.send(BASE + encoded)).body) as { path: string }).path, path);
  });

  it("a folder cannot be written", async () => {
    assert.equal((await post(server, "tools/", '{"fields":{"a":"1"}}')).status, 400);
    assert.equal((await change(server, "", { method: "DELETE" })).status, 400);
  });

  it("a bad If-Match is 400", async () => {
    for (const value of ["*", "0", "x", 'W/"1"', "-1", "1, 2"]) {
      const headers = { "If-Match": value };
      const refused = await change(server, "tools/once", {
        method: "PUT",
        body: '{"fields":{"a":"1"}}',
        headers,
      });
      assert.equal(refused.status, 400, value);
    }
  });

  it("GET /api/v1/token returns the store token; the log has the event, not the token", async () => {
    const response = await server.send("/api/v1/token");
    assert.deepEqual(JSON.parse(response.body), { token: "s.token", expires_at: "2026-11-21T17:30:00.000Z" });
    assert.ok(server.log.some((line) => line.includes("handed out")));
    assert.ok(!server.log.some((line) => line.includes("s.token")));
  });

  it("the log names paths and versions, never a field or a value [agent 24.23]", async () => {
    await post(server, "tools/logged", '{"fields":{"fieldname":"fieldvalue"}}');
    await server.send(`${BASE}tools/logged?reveal=true`);
    const log = server.log.join("\n");
    assert.match(log, /"path":"tools\/logged","version":1,"by":"api","message":"secret created"/);
    assert.match(log, /secret revealed/);
    assert.doesNotMatch(log, /fieldname|fieldvalue/);
  });
});

describe("the secrets of the JSON API, when something is wrong", () => {
  it("without a store token every route says not_signed_in [agent 35.14]", async () => {
    await using server = await startTestServer();
    server.view.set({ status: { authenticated: false } });
    for (const path of [BASE, `${BASE}x`, "/api/v1/token", "/api/v1/config", "/api/v1/config/download"]) {
      const refused = await server.send(path);
      assert.equal(refused.status, 401, path);
      assert.equal(code(refused), "not_signed_in");
    }
  });

  const faults: [ConstructorParameters<typeof SecretStoreError>[0], number, string][] = [
    ["denied", 403, "store_denied"],
    ["unavailable", 502, "store_unavailable"],
    ["sealed", 502, "store_unavailable"],
    ["invalid_response", 502, "store_unavailable"],
    ["corrupt", 502, "store_unavailable"],
    ["unauthenticated", 401, "not_signed_in"],
    ["unsupported_number", 400, "unsupported_number"],
    ["unsupported_text", 400, "unsupported_text"],
    ["too_large", 413, "body_too_large"],
    ["refused", 422, "store_refused"],
  ];
  for (const [fault, status, expected] of faults) {
    it(`the store's ${fault} is ${status} ${expected}, without the store's words [agent 35.15]`, async () => {
      const failing = (): Promise<never> => Promise.reject(new SecretStoreError(fault, "words of the store"));
      const store = { list: failing, read: failing, write: failing } as unknown as SecretStore;
      await using server = await startTestServer({ store, editablePaths: ["tools"] });
      const response = await post(server, "tools/x", '{"fields":{"a":"1"}}');
      assert.equal(response.status, status);
      assert.equal(code(response), expected);
      assert.doesNotMatch(response.body, /words of the store/);
      // A token that the store has refused is not used until somebody signs in.
      assert.equal(server.view.status().authenticated, fault !== "unauthenticated");
    });
  }

  it(
    "a read of a store that hangs ends as one for a page does [agent 35.20]",
    { timeout: 30_000 },
    async () => {
      // Ends only by the signal that the route gives along.
      const hanging = async (_path: string, { signal }: { signal?: AbortSignal } = {}): Promise<never> => {
        if (signal?.aborted === false) await once(signal, "abort");
        throw new SecretStoreError("aborted", "the caller gave up");
      };
      await using server = await startTestServer({
        store: { list: hanging, read: hanging } as unknown as SecretStore,
      });
      for (const response of await Promise.all([server.send(BASE), server.send(`${BASE}x`)])) {
        assert.equal(response.status, 502);
        assert.equal(code(response), "store_unavailable");
      }
      assert.match(server.view.status().store.last_error ?? "", /not answered within 4 s/);
    },
  );

  it("GET /api/v1/token with an embedded store is 404", async () => {
    await using server = await startTestServer();
    assert.equal((await server.send("/api/v1/token")).status, 404);
  });
});

describe("the configuration over the JSON API", () => {
  it("is shown as it applies, and as a file that can be read again [agent 24.17]", async () => {
    await using server = await startTestServer({
      configuration: "store: { driver: embedded }\nsync: { interval: 90s }",
    });
    const { config, sources } = JSON.parse((await server.send("/api/v1/config")).body) as {
      config: { sync: { interval: string } };
      sources: string[];
    };
    assert.deepEqual(sources, ["/home/ada/.config/daemon/config.yaml"]);
    assert.equal(config.sync.interval, "1m30s");
    const file = await server.send("/api/v1/config/download?format=yaml");
    assert.match(String(file.headers["content-disposition"]), /^attachment; filename="config\.yaml"$/);
    assert.match(file.body, /interval: 1m30s/);
    const registry = await server.send("/api/v1/config/download?format=reg");
    assert.match(String(registry.headers["content-disposition"]), /^attachment; filename="config\.reg"$/);
    assert.match(registry.body.replaceAll("\0", ""), /Windows Registry Editor[^]*"interval"="1m30s"/);
    assert.equal((await server.send("/api/v1/config/download?format=toml")).status, 400);
  });
});
