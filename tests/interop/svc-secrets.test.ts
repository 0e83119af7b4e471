import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CodeHost,
  gitEnvironment,
  type Postgres,
  postgresFolder,
  repositories,
  run,
  sendJson,
  startCodeHost,
  startPostgres,
  startSvc,
  type Svc,
  SVC_LAUNCHER,
} from "@devplat/testkit";

/** Secrets that are planted by configuration; none of them may come out again anywhere. */
const PLANTED = {
  SVC_ENCRYPTION_KEY: "5ec2e7".repeat(11).slice(0, 64),
  SVC_ENCRYPTION_KEY_PREVIOUS: "0ddba11".repeat(10).slice(0, 64),
  SVC_DEV_HOST_TOKEN: "ghp_plantedDefaultToken0000000",
  SVC_HOST_CLIENT_ID: "planted-client",
  SVC_HOST_CLIENT_SECRET: "planted-client-secret-0000000",
  SVC_CACHE_SERVICE_TOKEN: "ghp_plantedServiceToken00000000",
} as const;
const DSN_PASSWORD = "plantedDsnPassword";
const ALICE = "ghp_plantedTokenOfAlice00000000";

describe("planted secrets", { timeout: 240_000 }, () => {
  let host: CodeHost;
  let postgres: Postgres;
  let svc: Svc;
  let dsn: string;
  /** Everything that callers were answered, but for the answers that are there to give a secret. */
  const answers: string[] = [];
  /** Secrets that the service issued. */
  const issued: string[] = [];
  let admin = "";

  const send = async (method: string, path: string, token: string, body?: unknown): Promise<string> => {
    const response = await sendJson(svc.url + path, { method, token, body });
    return [...response.headers, await response.text()].join("\n");
  };
  const told = async (...request: Parameters<typeof send>): Promise<void> => {
    answers.push(await send(...request));
  };
  const field = (text: string, name: string): string => {
    const value = new RegExp(`"${name}":"([^"]+)"`).exec(text)?.[1] ?? "";
    assert.notEqual(value, "", text);
    issued.push(value);
    return value;
  };

  before(async () => {
    [host, postgres] = await Promise.all([startCodeHost(), startPostgres()]);
    host.addUser("alice", ALICE);
    await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
    dsn = (await postgres.createDatabase()).replace("//postgres@", `//postgres:${DSN_PASSWORD}@`);
    svc = await startSvc({
      codeHost: host,
      env: { ...PLANTED, SVC_DATABASE_DRIVER: "postgres", SVC_DATABASE_DSN: dsn, SVC_LOG_LEVEL: "debug" },
    });
    const login = { username: "root", role: "admin", host_token: ALICE };
    admin = field(await send("POST", "/auth/test-login", "", login), "session_token");
    await told("POST", "/api/cached-repos", admin, { owner: "acme", name: "widgets" });
    const made = await send("POST", "/api/admin-tokens", admin, { name: "ci", duration: "1h" });
    const robot = field(made, "token");
    const scopes = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    const proxy = field(await send("POST", "/api/tokens", robot, scopes), "token");
    const revoked = field(await send("POST", "/api/tokens", robot, scopes), "token");
    await told("POST", "/api/tokens/revoke", admin, { token: revoked });

    const clone = async (token: string): Promise<void> => {
      const url = `${svc.url.replace("://", `://x:${token}@`)}/acme/widgets.git`;
      const { stderr } = await run(
        "git",
        ["clone", "--quiet", url, join(svc.dataDir, `clone${issued.length}-${token.slice(0, 3)}`)],
        {
          env: gitEnvironment(),
        },
      );
      // git names the address that it was given, token and all.
      answers.push(stderr.replaceAll(url, "URL"));
    };
    await clone(proxy);
    await clone(revoked);
    await clone(ALICE);

    for (const secret of [proxy, robot, admin, ALICE]) {
      // Where nobody should put it: in paths, queries, names, bodies of every kind, headers.
      await told("GET", `/acme/${secret}.git/info/refs?service=git-upload-pack`, "");
      await told("GET", `/acme/widgets.git/info/refs?service=git-upload-pack&token=${secret}`, "");
      await told("GET", `/api/tokens/${secret}`, admin);
      await told("DELETE", `/api/admin-tokens/${secret}`, admin);
      await told("GET", `/api/audit?actor=${secret}`, admin);
      await told("GET", `/api/audit?cursor=${secret}`, admin);
      await told("GET", `/${secret}`, "");
      await told("GET", "/api/cached-repos", `Bearer ${secret}!`);
      await told("GET", "/api/cached-repos", `Basic ${secret}`);
      await told("GET", "/acme/widgets.git/info/refs?service=git-upload-pack", `Bearer ${secret}`);
      await told("GET", "/acme/other.git/info/refs?service=git-upload-pack", `Bearer ${secret}`);
      await told("POST", "/api/cached-repos", admin, { owner: secret, name: secret, [secret]: secret });
      await told("POST", "/api/cached-repos", admin, `{"owner":"${secret}`);
      await told("POST", "/api/tokens", admin, { ...scopes, scopes: `${secret}:read`, duration: secret });
      await told("POST", "/api/tokens/revoke", admin, { token: `${secret}x` });
      await told("POST", "/auth/test-login", "", { username: secret, role: secret });
      await told("POST", "/hooks/push", "", { zen: secret });
    }
    // A database that is away: what the driver says of it must not come through.
    const database = new URL(dsn).pathname.slice(1);
    const psql = async (sql: string): Promise<unknown> =>
      run(join(postgresFolder(), "psql"), ["-X", "-q", "-c", sql, postgres.dsn]);
    await psql(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS false`);
    await psql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}'`);
    for (let tries = 0; tries < 3; tries++) await told("GET", "/api/audit", admin);
    await told("GET", "/acme/widgets.git/info/refs?service=git-upload-pack", `Bearer ${revoked}`);
    await told("GET", "/readyz", "");
    await psql(`ALTER DATABASE ${database} WITH ALLOW_CONNECTIONS true`);
    // A code host that does not let the stored credential in any more.
    host.revoke(ALICE);
    await clone(proxy);
    await told("POST", "/api/tokens", admin, scopes);
  });
  after(async () => {
    await svc?.stop();
    await Promise.all([host?.stop(), postgres?.stop()]);
  });

  const secrets = (): string[] =>
    [...Object.values(PLANTED), DSN_PASSWORD, ALICE, ...issued].filter(
      (each) => each !== PLANTED.SVC_HOST_CLIENT_ID,
    );
  const assertHoldsNone = (text: string, where: string): void => {
    for (const secret of secrets()) {
      for (const form of [secret, Buffer.from(`x-access-token:${secret}`).toString("base64")]) {
        const at = text.indexOf(form);
        const around = text.slice(Math.max(0, at - 200), at + 200).replaceAll(form, "<secret>");
        assert.equal(at, -1, `${where} holds ${form.slice(0, 12)}…: ${around}`);
      }
    }
  };

  it("are not in a response", () => {
    assert.ok(answers.length > 60);
    // That an unknown field is named is the point of the refusal; here its name was the secret, and the caller's own.
    for (const answer of answers.filter((each) => !each.includes("unknown_fields")))
      assertHoldsNone(answer, "an answer");
  });

  it("are in no line of the log [svc 8.18]", () => {
    assert.match(svc.log(), /"log":"audit"/);
    assert.match(svc.log(), /database_unavailable|did not answer/);
    assertHoldsNone(svc.log(), "the log");
  });

  it("are in no metric", async () => {
    assertHoldsNone(await (await fetch(svc.metricsUrl)).text(), "the metrics");
  });

  it("are in no audit record", async () => {
    let trail = "";
    // Audit rows follow their actions within seconds, or later when the database was away.
    for (let tries = 0; tries < 600 && !trail.includes('"action":"access.denied"'); tries++) {
      trail = await send("GET", "/api/audit?limit=1000", admin);
      await sleep(100);
    }
    assert.match(trail, /"action":"git.fetch"/);
    assert.match(trail, /"action":"access.denied"/);
    assert.match(trail, /"action":"token.created"/);
    assertHoldsNone(trail, "the audit trail");
  });

  it("are in no title of the process, and not on its command line", () => {
    for (const name of ["cmdline", "comm", "status"]) {
      assertHoldsNone(readFileSync(`/proc/${svc.pid}/${name}`, "latin1"), name);
    }
  });

  it("are in no row of the database [svc 8.18]", async () => {
    const dump = await run(join(postgresFolder(), "pg_dump"), ["--data-only", "--inserts", dsn]);
    assert.equal(dump.code, 0, dump.stderr);
    assert.match(dump.stdout, /INSERT INTO public.tokens/);
    assertHoldsNone(dump.stdout, "the database");
  });

  it("are in no file of the data folder", () => {
    for (const entry of readdirSync(svc.dataDir, { recursive: true, withFileTypes: true })) {
      // A clone's own configuration has the address that it was made with.
      if (!entry.isFile() || /clone\d/.test(entry.parentPath)) continue;
      assertHoldsNone(readFileSync(join(entry.parentPath, entry.name), "latin1"), entry.name);
    }
  });

  it("are masked by config print, and in the errors of a refused start", async () => {
    const env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"))),
      ...PLANTED,
      SVC_DATA_DIR: svc.dataDir,
      SVC_DATABASE_DRIVER: "postgres",
    };
    const printed = await run(SVC_LAUNCHER, ["config", "print", "--json"], {
      env: { ...env, SVC_DATABASE_DSN: dsn },
    });
    assert.equal(printed.code, 0, printed.stderr);
    assertHoldsNone(printed.stdout, "config print");
    const unreachable = dsn.replace(/:\d+\//, ":1/");
    for (const wrong of [unreachable, dsn.replace("postgres:", "mysql:"), `${dsn}?sslmode=${DSN_PASSWORD}`]) {
      const refused = await run(SVC_LAUNCHER, ["serve"], { env: { ...env, SVC_DATABASE_DSN: wrong } });
      assert.notEqual(refused.code, 0);
      assertHoldsNone(refused.stdout + refused.stderr, "a refused start");
    }
    const key = await run(SVC_LAUNCHER, ["migrate"], {
      env: { ...env, SVC_ENCRYPTION_KEY: `${PLANTED.SVC_ENCRYPTION_KEY}zz` },
    });
    assert.equal(key.code, 2);
    assertHoldsNone(key.stdout + key.stderr, "a refused key");
  });
});
