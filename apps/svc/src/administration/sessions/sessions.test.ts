import assert from "node:assert/strict";
import { randomUUIDv7 } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { startAdministration, type TestAdministration } from "../../assemble/administration.test-kit.ts";
import type { Role, SessionRecord } from "../../storage/store.ts";
import { createToken, tokenHash, tokenStart } from "../../credentials/token-format.ts";

describe("ending a session", () => {
  let svc: TestAdministration;
  let admin: string;
  before(async () => {
    svc = await startAdministration();
    admin = await svc.session("root", "admin");
  });
  after(async () => svc.stop());

  const call = async (
    method: string,
    path: string,
    token: string,
    body?: Readonly<Record<string, unknown>>,
  ): Promise<Response> =>
    fetch(svc.url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const json = async (response: Promise<Response>): Promise<Record<string, unknown>> =>
    (await (await response).json()) as Record<string, unknown>;

  /** A session of alice's: of a program, or of a browser. */
  const session = async (
    device: string | undefined,
    kind: SessionRecord["kind"] = "session",
    role: Role = "user",
  ): Promise<{ id: string; token: string }> => {
    const user = await svc.store.users.ensure("alice", randomUUIDv7(), Date.now());
    const token = createToken("session");
    const id = randomUUIDv7();
    await svc.store.sessions.insert({
      id,
      kind,
      tokenHash: tokenHash(token.reveal()),
      tokenStart: tokenStart(token),
      userId: user.id,
      role,
      name: device,
      createdIp: undefined,
      userAgent: undefined,
      createdAt: Date.now(),
      expiresAt: Date.now() + 3_600_000,
      lastSeenAt: undefined,
      mintedBy: undefined,
    });
    return { id, token: token.reveal() };
  };
  /** Id and value of a token that the session makes. */
  const mint = async (token: string): Promise<{ id: string; value: string }> => {
    const body = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    const minted = await json(call("POST", "/api/tokens", token, body));
    return { id: String(minted["id"]), value: String(minted["token"]) };
  };
  const isGood = async (id: string): Promise<boolean> =>
    (await svc.store.tokens.get(id))?.revokedAt === undefined;

  /** Ends a session that made two tokens, and looks at what became of them. */
  const assertEnd = async (
    device: string | undefined,
    query: string,
    tokens: "revoked" | "kept",
  ): Promise<void> => {
    const [ended, other] = [await session(device), await session(device)];
    const minted = [await mint(ended.token), await mint(ended.token)];
    const foreign = await mint(other.token);
    assert.equal((await call("DELETE", `/api/sessions/${ended.id}${query}`, admin)).status, 204);
    for (const { id } of minted) assert.equal(await isGood(id), tokens === "kept");
    assert.equal(await isGood(foreign.id), true);
    const [event] = (await svc.audited()).filter(({ action }) => action === "session.ended");
    assert.equal(event?.target, ended.id);
    assert.equal(event.details?.["tokens_revoked"], tokens === "kept" ? 0 : 2);
  };

  it("a program's takes the tokens with it that it made, unless tokens=keep [svc 8.10]", async () => {
    await assertEnd("svc-cli", "", "revoked");
    await assertEnd("svc-cli", "?tokens=keep", "kept");
  });

  it("a browser's leaves its tokens as they are, unless tokens=revoke [svc 8.10]", async () => {
    await assertEnd(undefined, "", "kept");
    await assertEnd(undefined, "?tokens=revoke", "revoked");
  });

  it("ending an admin's program revokes its administration tokens and theirs [svc 8.10]", async () => {
    const program = await session("svc-cli", "session", "admin");
    const made = await json(
      call("POST", "/api/admin-tokens", program.token, { name: "one", duration: "1h" }),
    );
    const next = await json(
      call("POST", "/api/admin-tokens", String(made["token"]), { name: "two", duration: "1h" }),
    );
    const minted = [await mint(program.token), await mint(String(next["token"]))];
    const other = await json(call("POST", "/api/admin-tokens", admin, { name: "other", duration: "1h" }));
    const listed = (await (await call("GET", "/api/sessions?all=true", admin)).json()) as Record<
      string,
      unknown
    >[];
    assert.equal(listed.find((each) => each["id"] === program.id)?.["tokens"], 4);
    assert.equal((await call("DELETE", `/api/sessions/${program.id}`, admin)).status, 204);
    for (const token of [program.token, made["token"], next["token"]]) {
      assert.equal((await call("GET", "/api/session", String(token))).status, 401);
    }
    for (const { id } of minted) assert.equal(await isGood(id), false);
    assert.equal((await call("GET", "/api/session", String(other["token"]))).status, 200);
    const [event] = (await svc.audited()).filter(({ action }) => action === "session.ended");
    assert.equal(event?.details?.["tokens_revoked"], 4);
  });

  it("tokens=anything else is 400, and nothing ends", async () => {
    const { id, token } = await session("svc-cli");
    assert.equal((await call("DELETE", `/api/sessions/${id}?tokens=all`, admin)).status, 400);
    assert.equal((await call("GET", "/api/session", token)).status, 200);
  });

  it("a session's tokens are counted in the list: those that are good now", async () => {
    const { id, token } = await session("svc-cli");
    const { id: revoked } = await mint(token);
    await mint(token);
    assert.equal((await call("DELETE", `/api/tokens/${revoked}`, admin)).status, 204);
    const listed = (await (await call("GET", "/api/sessions?all=true", admin)).json()) as Record<
      string,
      unknown
    >[];
    assert.equal(listed.find((each) => each["id"] === id)?.["tokens"], 1);
  });

  it("sessions come in pages, each once, and the link keeps the other parameters", async () => {
    const seen: string[] = [];
    let path: string | undefined = "/api/sessions?all=true&limit=2";
    while (path !== undefined) {
      const response = await call("GET", path, admin);
      const page = (await response.json()) as Record<string, unknown>[];
      assert.ok(page.length <= 2);
      seen.push(...page.map((each) => String(each["id"])));
      const [, next] = /<([^>]*)>; rel="next"/.exec(response.headers.get("link") ?? "") ?? [];
      path = next === undefined ? undefined : new URL(next).pathname + new URL(next).search;
      if (path !== undefined) assert.match(path, /all=true/);
    }
    const all = await svc.store.sessions.list({ kind: "session" });
    assert.deepEqual(new Set(seen), new Set(all.map(({ id }) => id)));
    assert.equal(seen.length, all.length);
  });

  it("a plain log-out leaves the tokens as they are", async () => {
    const { token } = await session("svc-cli");
    const minted = await mint(token);
    assert.equal((await call("POST", "/auth/logout", token)).status, 204);
    assert.equal(await isGood(minted.id), true);
  });

  it("a session that ends while it makes a token gets none [svc 8.10]", async () => {
    const { id, token } = await session("svc-cli");
    const { tokens } = svc.store;
    const insert = tokens.insert.bind(tokens);
    // The moment between the look at the session and the token's record.
    tokens.insert = async (record) => {
      tokens.insert = insert;
      assert.equal((await call("DELETE", `/api/sessions/${id}`, admin)).status, 204);
      await insert(record);
    };
    const body = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    assert.equal((await call("POST", "/api/tokens", token, body)).status, 403);
    assert.deepEqual((await tokens.list({ mintedBy: id, limit: 10 })).records, []);
  });

  it("POST /api/tokens/revoke ends a leaked session or token, with what it made [svc 6.7]", async () => {
    const finder = await svc.session("bob", "user");
    for (const kind of ["session", "administration"] as const) {
      const leaked = await session(kind === "session" ? undefined : "nightly", kind);
      const minted = await mint(leaked.token);
      assert.equal((await call("POST", "/api/tokens/revoke", finder, { token: leaked.token })).status, 204);
      assert.equal((await call("GET", "/api/session", leaked.token)).status, 401);
      assert.equal(await isGood(minted.id), false);
      assert.equal((await call("POST", "/api/tokens/revoke", finder, { token: leaked.token })).status, 404);
    }
    const never = createToken("session").reveal();
    assert.equal((await call("POST", "/api/tokens/revoke", finder, { token: never })).status, 404);
  });

  it("an administration token's tokens outlive it, unless tokens=revoke says otherwise", async () => {
    for (const [query, good] of [
      ["", true],
      ["?tokens=revoke", false],
    ] as const) {
      const made = await json(call("POST", "/api/admin-tokens", admin, { name: "ci", duration: "1h" }));
      const minted = await mint(String(made["token"]));
      const path = `/api/admin-tokens/${String(made["id"])}${query}`;
      assert.equal((await call("DELETE", path, admin)).status, 204);
      assert.equal(await isGood(minted.id), good);
    }
  });
});
