import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import { createToken } from "../credentials/token-format.ts";
import type { Operation } from "./operation.ts";

/** Each test sends one kind of bad request to every operation. */
let administration: TestAdministration;
let admin: string;
before(async () => {
  administration = await startAdministration();
  admin = await administration.session("root", "admin");
});
after(async () => administration.stop());

const ID = "01a1fdbd-b598-7000-8000-000000000001";
const pathOf = ({ path }: Operation): string => path.replaceAll(/\{\w+\}/g, ID);
const guarded = (): Operation[] => administration.operations.filter(({ access }) => access !== "public");
const withBody = (): Operation[] => administration.operations.filter(({ body }) => body !== undefined);

/** A raw request: `fetch` would correct many of the faults that these tests send. */
async function raw(
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string | Buffer,
): Promise<{ status: number; type: string; text: string; allow: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(administration.url + path, { method, headers }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () =>
        resolve({
          status: incoming.statusCode ?? 0,
          type: incoming.headers["content-type"] ?? "",
          text: Buffer.concat(chunks).toString(),
          allow: incoming.headers["allow"] ?? "",
        }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
const json = { "content-type": "application/json" };

describe("every operation of the administration", () => {
  it("without a valid credential is 401 with a challenge [svc 8.2]", async () => {
    const unknown = createToken("session").reveal();
    for (const each of guarded()) {
      for (const headers of [
        {},
        bearer("nonsense"),
        bearer(unknown),
        bearer(`${unknown}x`),
        { authorization: "Bearer" },
      ]) {
        const response = await raw(each.method, pathOf(each), headers);
        assert.equal(response.status, 401, `${each.id} ${JSON.stringify(headers)}`);
        assert.match(response.type, /problem\+json/);
      }
    }
  });

  it("with a proxy or agent token, known or not, is 403 [svc 8.2]", async () => {
    for (const each of guarded()) {
      for (const kind of ["proxy", "agent"] as const) {
        const response = await raw(each.method, pathOf(each), bearer(createToken(kind).reveal()));
        assert.equal(response.status, 403, each.id);
      }
    }
  });

  it("with an expired session is 401", async () => {
    const token = await administration.session("late", "admin");
    const [record] = await administration.store.sessions.list({ kind: "session" });
    assert.ok(record !== undefined);
    await administration.store.sessions.delete(record.id);
    await administration.store.sessions.insert({ ...record, expiresAt: Date.now() - 1 });
    for (const each of guarded()) {
      assert.equal((await raw(each.method, pathOf(each), bearer(token))).status, 401, each.id);
    }
  });

  it("that needs the admin role is 403 for a user, also for unknown ids [svc 8.3]", async () => {
    const user = await administration.session("alice", "user");
    for (const each of guarded().filter(({ access }) => access === "admin")) {
      const response = await raw(each.method, pathOf(each), { ...bearer(user), ...json }, each.body && "{}");
      assert.equal(response.status, 403, each.id);
      assert.doesNotMatch(response.text, /not_found/);
    }
  });

  it("that changes something is 403 from a foreign page, even with a valid token", async () => {
    for (const each of administration.operations.filter(({ method }) => method !== "GET")) {
      const headers = { ...bearer(admin), ...json, origin: "https://evil.example" };
      const response = await raw(each.method, pathOf(each), headers, each.body && "{}");
      assert.equal(response.status, 403, each.id);
    }
  });

  const bodies: [name: string, headers: Record<string, string>, body: string | Buffer, statuses: number[]][] =
    [
      ["of another type", { "content-type": "text/plain" }, "{}", [415]],
      ["as a form", { "content-type": "application/x-www-form-urlencoded" }, "a=b", [415]],
      ["without a type", {}, "{}", [415]],
      ["that is not JSON", json, "{", [400]],
      ["that is empty", json, "", [400]],
      ["that is an array", json, "[]", [400]],
      ["that is null", json, "null", [400]],
      ["that is a text", json, '"x"', [400]],
      ["that is not UTF-8", json, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), [400]],
      ["with an unknown field", json, '{"planted-unknown-field":1}', [400]],
      ["with a field twice", json, '{"planted-field":1,"planted-field":1}', [400]],
      ["with a field twice further in", json, '{"planted":[0,{"x":1,"\\u0078":1}]}', [400]],
      ["with __proto__", json, '{"__proto__":{"role":"admin"}}', [400, 422]],
      ["over 1 MiB", json, Buffer.alloc(1024 * 1024 + 1, " "), [413]],
      ["nested very deep", json, "[".repeat(200_000), [400]],
    ];
  for (const [name, headers, body, statuses] of bodies) {
    it(`that takes a body refuses one ${name}, and does not quote it`, async () => {
      for (const each of withBody()) {
        const response = await raw(each.method, pathOf(each), { ...bearer(admin), ...headers }, body);
        assert.ok(statuses.includes(response.status), `${each.id}: ${response.status} ${response.text}`);
        assert.match(response.type, /problem\+json/, each.id);
      }
    });
  }

  it("refuses fields of every wrong type, and never fails itself [svc 10.8]", async () => {
    const wrong = [null, true, 7, -1, 1e300, "", "\u0000", "x".repeat(10_000), [], {}, [[]], { a: 1 }];
    for (const each of withBody()) {
      const fields = Object.keys((each.body as { shape?: object }).shape ?? {});
      for (const field of fields) {
        for (const value of wrong) {
          const body = JSON.stringify({ [field]: value });
          const response = await raw(each.method, pathOf(each), { ...bearer(admin), ...json }, body);
          assert.ok(response.status < 500, `${each.id} ${field}: ${response.status} ${response.text}`);
          assert.equal(response.text.includes("x".repeat(100)), false, "the value is not quoted");
        }
      }
    }
  });

  it("answers another method with 405 and what it takes", async () => {
    for (const each of administration.operations) {
      const response = await raw("PUT", pathOf(each), bearer(admin));
      assert.equal(response.status, 405, each.path);
      assert.ok(response.allow.includes(each.method), each.path);
    }
  });

  it("refuses unknown and repeated query parameters", async () => {
    for (const each of administration.operations.filter(({ query }) => query !== undefined)) {
      for (const query of [
        "planted=1",
        "limit=1&limit=2",
        "cursor=%00",
        "cursor=AAAA",
        `cursor=${"A".repeat(5000)}`,
        `cursor=${"Y".repeat(5000)}`,
      ]) {
        const headers = { ...bearer(admin), ...(each.body === undefined ? {} : json) };
        const response = await raw(each.method, `${pathOf(each)}?${query}`, headers, each.body && "{}");
        assert.equal(response.status, 400, `${each.id}?${query}: ${response.text}`);
      }
    }
  });

  it("finds nothing under ids made to break out", async () => {
    const ids = ["'%20OR%201=1--", "..%2f..%2fetc%2fpasswd", "%25", "x".repeat(5000), "%F0%9F%92%A9", "null"];
    for (const each of administration.operations.filter(({ path }) => path.includes("{"))) {
      for (const id of ids) {
        const body = each.body === undefined ? undefined : "{}";
        const path = each.path.replaceAll(/\{\w+\}/g, id);
        const response = await raw(each.method, path, { ...bearer(admin), ...(body ? json : {}) }, body);
        assert.ok([400, 404, 409, 422].includes(response.status), `${each.id} ${id}: ${response.status}`);
      }
    }
  });

  it("leaves no error of its own in the log", () => {
    assert.doesNotMatch(administration.log(), /"level":"error"|an administration request failed/);
  });
});
