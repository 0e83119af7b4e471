import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { z } from "zod";
import { startAdministration, type TestAdministration } from "../assemble/administration.test-kit.ts";
import { adminTokenSchema, newAdminTokenSchema } from "./admin-tokens.ts";
import { auditRecordSchema } from "./audit.ts";

let administration: TestAdministration;
let admin: string;
let user: string;
before(async () => {
  administration = await startAdministration();
  admin = await administration.session("root", "admin");
  user = await administration.session("alice", "user");
});
after(async () => administration.stop());

async function send(
  method: string,
  path: string,
  body?: unknown,
  token = admin,
): Promise<{ status: number; headers: Headers; json: unknown }> {
  const response = await fetch(administration.url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    json: text === "" ? undefined : JSON.parse(text),
  };
}

type Shown = z.output<typeof auditRecordSchema>;
async function audited(query = ""): Promise<Shown[]> {
  await administration.audited();
  const { status, json } = await send("GET", `/api/audit${query}`);
  assert.equal(status, 200, JSON.stringify(json));
  return z.array(auditRecordSchema).parse(json);
}

async function createAdminToken(name: string, token = admin): Promise<z.output<typeof newAdminTokenSchema>> {
  const { status, json } = await send("POST", "/api/admin-tokens", { name, duration: "90d" }, token);
  assert.equal(status, 201, JSON.stringify(json));
  return newAdminTokenSchema.parse(json);
}

describe("/api/admin-tokens", () => {
  it("an administration token acts as its admin until it is revoked [svc 8.1]", async () => {
    const made = await createAdminToken("backup");
    assert.match(made.token, /^svcr_/);
    assert.equal((await send("GET", "/api/cached-repos", undefined, made.token)).status, 200);
    const listed = z.array(adminTokenSchema).parse((await send("GET", "/api/admin-tokens")).json);
    const [entry] = listed.filter(({ id }) => id === made.id);
    assert.equal(entry?.name, "backup");
    assert.equal(entry?.token_start, made.token.slice(0, 12));
    assert.notEqual(entry?.last_used_at, null);
    assert.equal(JSON.stringify(listed).includes(made.token), false);
    assert.equal((await send("GET", `/api/admin-tokens/${made.id}`)).status, 200);
    assert.equal((await send("DELETE", `/api/admin-tokens/${made.id}`)).status, 204);
    assert.equal((await send("GET", "/api/cached-repos", undefined, made.token)).status, 401);
    assert.equal((await send("DELETE", `/api/admin-tokens/${made.id}`)).status, 404);
  });

  it("needs the admin role, a name and a limited duration", async () => {
    const body = { name: "x", duration: "1h" };
    assert.equal((await send("POST", "/api/admin-tokens", body, user)).status, 403);
    assert.equal((await send("GET", "/api/admin-tokens", undefined, user)).status, 403);
    for (const wrong of [
      { ...body, name: "" },
      { ...body, name: "   " },
      { ...body, name: "a\u0000b" },
      { ...body, duration: "59s" },
      { ...body, duration: "366d" },
      { ...body, duration: "never" },
      { name: "x" },
    ]) {
      const { status, json } = await send("POST", "/api/admin-tokens", wrong);
      assert.equal(status, 422, JSON.stringify([wrong, json]));
    }
    assert.equal((await send("POST", "/api/admin-tokens", { ...body, role: "admin" })).status, 400);
  });

  it("a login session is not reached through it, and the other way around", async () => {
    const session = await administration.store.sessions.list({ kind: "session" });
    assert.equal((await send("DELETE", `/api/admin-tokens/${session[0]?.id}`)).status, 404);
  });

  it("pages with limit and Link, newest first, each once", async () => {
    const made = [await createAdminToken("p1"), await createAdminToken("p2"), await createAdminToken("p3")];
    const seen: string[] = [];
    let path: string | undefined = "/api/admin-tokens?limit=2";
    while (path !== undefined) {
      const { headers, json } = await send("GET", path);
      seen.push(
        ...z
          .array(adminTokenSchema)
          .parse(json)
          .map(({ id }) => id),
      );
      const next: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
      path = next === undefined ? undefined : next.replace(/^https?:\/\/[^/]+/, "");
    }
    assert.deepEqual(
      seen.filter((id) => made.some((each) => each.id === id)),
      made.map(({ id }) => id).toReversed(),
    );
    assert.equal(new Set(seen).size, seen.length);
  });
});

describe("GET /api/tokens, in pages", () => {
  it("pages have every token once, newest first, and `mine` the admin's own [svc 6.7]", async () => {
    const body = { repository: "acme/paged", scopes: "contents:read", duration: "1h" };
    for (let count = 0; count < 5; count++) await send("POST", "/api/tokens", body, user);
    const seen: string[] = [];
    let path: string | undefined = "/api/tokens?limit=2";
    while (path !== undefined) {
      const { headers, json } = await send("GET", path, undefined, user);
      seen.push(...(json as { id: string }[]).map(({ id }) => id));
      const next: string | undefined = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
      path = next === undefined ? undefined : next.replace(/^https?:\/\/[^/]+/, "");
    }
    assert.equal(new Set(seen).size, seen.length);
    assert.deepEqual(seen, seen.toSorted().toReversed(), "UUIDv7 order by time");
    assert.ok(seen.length >= 5);
    assert.deepEqual((await send("GET", "/api/tokens?mine=true")).json, []);
    for (const bad of [
      "limit=0",
      "limit=1001",
      "limit=x",
      "mine=yes",
      "page=2",
      "limit=1&limit=2",
      "cursor=none",
    ]) {
      assert.equal((await send("GET", `/api/tokens?${bad}`)).status, 400, bad);
    }
  });
});

describe("GET /api/audit", () => {
  it("has each action with its caller, address, target and outcome [svc 6.15]", async () => {
    const { json } = await send("POST", "/api/cached-repos", { owner: "acme", name: "audited" });
    const { id } = json as { id: string };
    await send("PATCH", `/api/cached-repos/${id}`, { enabled: false });
    await send("POST", `/api/cached-repos/${id}/purge`);
    await send("DELETE", `/api/cached-repos/${id}`);
    const found = await audited("?target=ACME/Audited");
    assert.deepEqual(
      found.map(({ action }) => action),
      [
        "cached_repository.removed",
        "cached_repository.purged",
        "cached_repository.updated",
        "cached_repository.added",
      ],
    );
    for (const each of found) {
      assert.equal(each.actor.kind, "user");
      assert.equal(each.actor.login, "root");
      assert.equal(each.outcome, "allowed");
      assert.match(each.remote_ip ?? "", /127\.0\.0\.1|::1/);
    }
    assert.deepEqual(found[2]?.details, {
      enabled: false,
      timeout_seconds: 30,
      max_cache_size_mb: "none",
      seed: true,
      bundles: false,
    });
  });

  it("tells who used an administration token, and of what was refused", async () => {
    const made = await createAdminToken("robot");
    await send("GET", "/api/audit", undefined, user);
    await send("GET", "/api/audit", undefined, "svcx_nonsense");
    const robots = await createAdminToken("by-robot", made.token);
    const [creation] = await audited(`?target=${robots.id}`);
    assert.deepEqual(creation?.actor, {
      kind: "administration_token",
      login: "root",
      credential_id: made.id,
    });
    const denied = await audited("?action=access.denied&outcome=denied");
    assert.ok(denied.some(({ actor, target }) => actor.login === "alice" && target === "/api/audit"));
    assert.ok(denied.some(({ actor }) => actor.kind === "anonymous"));
  });

  it("never tells a secret", async () => {
    const minted = (
      await send("POST", "/api/tokens", {
        repository: "acme/x",
        scopes: "contents:read",
        duration: "1h",
        description: "planted-description",
      })
    ).json as { token: string };
    const made = await createAdminToken("quiet");
    await send("POST", "/api/tokens/revoke", { token: minted.token });
    const everything = JSON.stringify(await audited("?limit=1000")) + administration.log();
    for (const secret of [minted.token, made.token, admin, user]) {
      assert.equal(everything.includes(secret), false);
    }
  });

  it("filters, pages and refuses parameters that are wrong or unknown", async () => {
    const all = await audited("?limit=1000");
    assert.deepEqual(
      await audited("?actor=ALICE&action=token.created,token.revoked"),
      all.filter(
        ({ actor, action }) => actor.login === "alice" && ["token.created", "token.revoked"].includes(action),
      ),
    );
    const until = all[2]?.at ?? "";
    assert.deepEqual(
      await audited(`?limit=1000&to=${until}`),
      all.filter(({ at }) => at < until),
    );
    assert.deepEqual(await audited("?from=2100-01-01T00:00:00Z"), []);
    const { headers } = await send("GET", "/api/audit?limit=1&outcome=allowed");
    assert.match(headers.get("link") ?? "", /\/api\/audit\?.*outcome=allowed.*cursor=.*>; rel="next"$/);
    for (const bad of [
      "action=everything",
      "action=",
      "outcome=maybe",
      "from=yesterday",
      "from=2020-13-01T00:00:00Z",
      "limit=0",
      "limit=1001",
      "actor=",
      "actor=%00",
      "sort=asc",
      "cursor=garbage",
      "action=token.created%27--",
    ]) {
      const { status } = await send("GET", `/api/audit?${bad}`);
      assert.equal(status, 400, bad);
    }
    assert.deepEqual(await audited("?actor=%27%20OR%201=1%20--"), []);
  });

  it("is for admins only", async () => {
    assert.equal((await send("GET", "/api/audit", undefined, user)).status, 403);
  });
});
