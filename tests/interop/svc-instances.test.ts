import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CodeHost,
  gitEnvironment,
  type Postgres,
  repositories,
  run,
  sendJson,
  startCodeHost,
  startPostgres,
  startSvc,
  type Svc,
  until,
} from "@devplat/testkit";

const HOST_TOKEN = "ghp_plantedHostToken";
/** Milliseconds after which a revocation counts on every instance (spec/svc.md section 4). */
const REVOKED_WITHIN_MS = 2000;

describe("two instances on one Postgres", { timeout: 240_000 }, () => {
  let host: CodeHost;
  let postgres: Postgres;
  let one: Svc;
  let two: Svc;
  let admin: string;
  let dsn: string;

  before(async () => {
    [host, postgres] = await Promise.all([startCodeHost(), startPostgres()]);
    host.addUser("alice", HOST_TOKEN);
    await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
    // Postgres here accepts any password.
    dsn = (await postgres.createDatabase()).replace("//postgres@", "//postgres:plantedPassword@");
    const env = {
      SVC_DATABASE_DRIVER: "postgres",
      SVC_DATABASE_DSN: dsn,
      SVC_ENCRYPTION_KEY: "5a".repeat(32),
      SVC_DEV_HOST_TOKEN: HOST_TOKEN,
      SVC_CACHE_ENABLED: "true",
    };
    // Both start concurrently on an empty database: one of them migrates, and the other waits.
    [one, two] = await Promise.all([startSvc({ codeHost: host, env }), startSvc({ codeHost: host, env })]);
    admin = String(
      (await call(one, "POST", "/auth/test-login", "", { username: "root", role: "admin" }))["session_token"],
    );
  });
  after(async () => {
    await Promise.all([one?.stop(), two?.stop()]);
    await Promise.all([host?.stop(), postgres?.stop()]);
  });

  async function send(
    svc: Svc,
    method: string,
    path: string,
    token: string,
    body?: unknown,
  ): Promise<Response> {
    return sendJson(svc.url + path, { method, token, body });
  }
  async function call(
    svc: Svc,
    method: string,
    path: string,
    token: string,
    body?: unknown,
  ): Promise<Record<string, unknown>> {
    return (await (await send(svc, method, path, token, body)).json()) as Record<string, unknown>;
  }
  const mint = async (svc: Svc): Promise<{ token: string; id: string }> => {
    const body = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    const minted = await call(svc, "POST", "/api/tokens", admin, body);
    return { token: String(minted["token"]), id: String(minted["id"]) };
  };
  const lsRemote = async (svc: Svc, token: string): Promise<number> => {
    const url = `${svc.url.replace("://", `://x:${token}@`)}/acme/widgets.git`;
    return (await run("git", ["ls-remote", "--quiet", url], { env: gitEnvironment() })).code;
  };

  it("a session that began at one is good at the other, and ends at both [svc 7.6]", async () => {
    const body = { username: "bob", role: "user" };
    const bob = String((await call(one, "POST", "/auth/test-login", "", body))["session_token"]);
    assert.equal((await send(two, "GET", "/api/tokens", bob)).status, 200);
    assert.equal((await send(two, "POST", "/auth/logout", bob)).status, 204);
    assert.equal((await send(one, "GET", "/api/tokens", bob)).status, 401);
  });

  it("a token minted at one opens the other; revoked there, it ends here in 2 seconds [svc 9.5]", async () => {
    const { token, id } = await mint(one);
    assert.equal(await lsRemote(one, token), 0);
    assert.equal(await lsRemote(two, token), 0);
    assert.equal((await send(two, "DELETE", `/api/tokens/${id}`, admin)).status, 204);
    const revokedAt = performance.now();
    assert.notEqual(await lsRemote(two, token), 0, "at once where it was revoked");
    // Constant requests keep the token in memory as long as possible.
    const path = "/acme/widgets.git/info/refs?service=git-upload-pack";
    for (;;) {
      const askedAt = performance.now();
      if ((await send(one, "GET", path, token)).status !== 200) break;
      assert.ok(askedAt - revokedAt < REVOKED_WITHIN_MS, "still good after 2 seconds");
      await sleep(20);
    }
  });

  it("an administration token revoked at one is invalid at the other immediately", async () => {
    const made = await call(one, "POST", "/api/admin-tokens", admin, { name: "ci", duration: "1h" });
    const token = String(made["token"]);
    assert.equal((await send(two, "GET", "/api/cached-repos", token)).status, 200);
    assert.equal((await send(two, "DELETE", `/api/admin-tokens/${String(made["id"])}`, token)).status, 204);
    assert.equal((await send(one, "GET", "/api/cached-repos", token)).status, 401);
  });

  it("actions at one are in the audit trail of the other", async () => {
    const { id } = await mint(one);
    const path = `/api/audit?action=token.created&target=${id}`;
    for (let tries = 0; ; tries++) {
      const found = (await (await send(two, "GET", path, admin)).json()) as unknown[];
      if (found.length === 1) break;
      assert.ok(tries < 1000, "the record never came");
      await sleep(50);
    }
  });

  it("a database that is down is 503 with Retry-After, and the service recovers [svc 10.10]", async () => {
    const { token } = await mint(one);
    const path = "/acme/widgets.git/info/refs?service=git-upload-pack";
    const database = new URL(dsn).pathname.slice(1);
    await administer(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS false`);
    await administer(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
    const needed = "/readyz?require=database";
    await until(async () => (await send(one, "GET", needed, "")).status === 503);
    const degraded = await send(one, "GET", "/readyz", "");
    assert.equal(degraded.status, 200);
    assert.match(await degraded.text(), /^degraded: the database does not answer/m);
    assert.equal(await lsRemote(one, HOST_TOKEN), 0, "what the balancer sends is served");
    const listed = await send(one, "GET", "/api/audit", admin);
    assert.equal(listed.status, 503);
    assert.match(await listed.text(), /"code":"database_unavailable"/);
    assert.equal(listed.headers.get("retry-after"), "5");
    const page = await fetch(`${one.url}/admin/tokens`, { headers: { cookie: `svc_session=${admin}` } });
    assert.equal(page.status, 503);
    assert.equal(page.headers.get("retry-after"), "5");
    assert.match(await page.text(), /The database of this service does not answer/);
    const cloned = await send(one, "GET", path, token);
    assert.equal(cloned.status, 503);
    assert.equal(cloned.headers.get("retry-after"), "5");
    assert.match(await cloned.text(), /The database of this service does not answer/);
    assert.equal((await send(one, "GET", "/healthz", "")).status, 200);
    await administer(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS true`);
    await until(async () => (await send(one, "GET", needed, "")).status === 200);
    assert.equal((await send(one, "GET", path, token)).status, 200);
    assert.equal((await send(one, "GET", "/api/audit", admin)).status, 200);
  });

  it("the password of the DSN is in no log", () => {
    for (const svc of [one, two]) assert.doesNotMatch(svc.log(), /planted/);
  });

  async function administer(sql: string): Promise<void> {
    const { code, stderr } = await run("psql", ["-X", "-q", "-c", sql, postgres.dsn]);
    assert.equal(code, 0, stderr);
  }
});
