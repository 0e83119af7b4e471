import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  callJson,
  type CodeHost,
  type Finished,
  git,
  gitEnvironment,
  repositories,
  run,
  startCodeHost,
  startPostgres,
  startSvc,
  startVault,
  type Svc,
  SVC_LAUNCHER,
  type TempFolder,
  tempFolder,
  type Vault,
} from "@devplat/testkit";

const HOST_TOKEN = "ghp_planted0HostToken";
const OLD_KEY = "0a".repeat(32);
const NEW_KEY = "1b".repeat(32);

let folder: TempFolder;
let host: CodeHost;
before(async () => {
  [folder, host] = await Promise.all([tempFolder("svc-databases"), startCodeHost()]);
  host.addUser("alice", HOST_TOKEN);
  await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
});
after(async () => {
  await host?.stop();
  await folder?.remove();
});

async function svc(args: readonly string[], env: Record<string, string>): Promise<Finished> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  return run(SVC_LAUNCHER, args, { cwd: folder.path, env: { ...Object.fromEntries(inherited), ...env } });
}
it("a failed start ends the process, also with open connections to Postgres", async () => {
  const postgres = await startPostgres();
  try {
    const { code, stderr } = await svc(["serve", "--migrate"], {
      SVC_DEV_MODE: "true",
      SVC_ENCRYPTION_KEY: NEW_KEY,
      SVC_DATA_DIR: join(folder.path, "failed-start"),
      SVC_SERVER_LISTEN: "127.0.0.1:0",
      SVC_HOST_URL: host.url,
      SVC_DATABASE_DRIVER: "postgres",
      SVC_DATABASE_DSN: await postgres.createDatabase(),
      SVC_CACHE_ENABLED: "true",
      SVC_CACHE_OBJECT_BUCKET: "bucket",
      SVC_CACHE_OBJECT_ENDPOINT: "http://127.0.0.1:9/path",
      SVC_CACHE_OBJECT_ACCESS_KEY_ID: "id",
      SVC_CACHE_OBJECT_SECRET_ACCESS_KEY: "secret",
      SVC_CACHE_STORAGE_PATH: "prefix",
    });
    assert.equal(code, 2, stderr);
    assert.match(stderr, /cache\.object/);
  } finally {
    await postgres.stop();
  }
});

async function call(
  service: Svc,
  method: string,
  path: string,
  token: string,
  body?: unknown,
): Promise<Record<string, unknown> & Record<string, unknown>[]> {
  const { status, body: answer } = await callJson(service.url + path, { method, token, body });
  assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(answer)}`);
  return answer as typeof answer & Record<string, unknown>[];
}
const login = async (service: Svc): Promise<string> => {
  const body = { username: "root", role: "admin", host_token: HOST_TOKEN };
  return String((await call(service, "POST", "/auth/test-login", "", body))["session_token"]);
};

describe("SVC_DATABASE_DRIVER=vault", { timeout: 240_000 }, () => {
  let vault: Vault;
  let env: Record<string, string>;
  before(async () => {
    vault = await startVault();
    env = {
      SVC_DATABASE_DRIVER: "vault",
      SVC_DATABASE_DSN: vault.address,
      SVC_VAULT_TOKEN: vault.rootToken,
      SVC_DATA_DIR: join(folder.path, "vault-data"),
    };
  });
  after(async () => vault?.stop());

  it("database behind: migrate status exits 1, serve refuses, and migrate up applies", async () => {
    const behind = await svc(["migrate", "status", "--json"], env);
    assert.equal(behind.code, 1, behind.stderr);
    assert.deepEqual(JSON.parse(behind.stdout), { applied: [], pending: ["0001_initial"], unknown: [] });
    const refused = await svc(["serve"], env);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /lacks 1 migration[^]*svc migrate/);
    const applied = await svc(["migrate", "up", "--json"], env);
    assert.deepEqual(JSON.parse(applied.stdout), { applied: ["0001_initial"] });
    assert.equal((await svc(["migrate", "status"], env)).code, 0);
  });

  it("SVC_ENCRYPTION_KEY is not needed: a token clones, also after a restart [svc 7.6]", async () => {
    const { SVC_DATA_DIR: _, ...vaultEnv } = env;
    const options = { codeHost: host, env: { ...vaultEnv, SVC_ENCRYPTION_KEY: undefined } };
    const first = await startSvc(options);
    const admin = await login(first);
    await call(first, "POST", "/api/cached-repos", admin, { owner: "acme", name: "widgets" });
    const request = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    const token = String((await call(first, "POST", "/api/tokens", admin, request))["token"]);
    await first.stop();
    const second = await startSvc(options);
    const url = `${second.url.replace("://", `://x:${token}@`)}/acme/widgets.git`;
    const cloned = await run("git", ["clone", "--quiet", url, join(folder.path, "from-vault")], {
      env: gitEnvironment(),
    });
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.equal((await call(second, "GET", "/api/cached-repos", admin)).length, 1);
    await second.stop();
  });
});

describe("tokens, keys and audit of a service on SQLite", { timeout: 240_000 }, () => {
  let service: Svc;
  let admin: string;
  const dataDir = (): string => join(folder.path, "data");
  const start = async (keys: Record<string, string>): Promise<Svc> =>
    startSvc({ codeHost: host, dataDir: dataDir(), env: keys });

  before(async () => {
    service = await start({ SVC_ENCRYPTION_KEY: OLD_KEY });
    admin = await login(service);
  });
  after(async () => service?.stop());

  const client = (): Record<string, string> => ({ SVC_URL: service.url, SVC_TOKEN: admin });
  /** Audit rows follow their actions within a second or two: requests them until the expected number exists. */
  const audited = async (query: string, count: number): Promise<Record<string, unknown>[]> => {
    for (let tries = 0; ; tries++) {
      const found = await call(service, "GET", `/api/audit?limit=1000&${query}`, admin);
      if (found.length >= count || tries === 600) return found;
      await sleep(100);
    }
  };

  it("svc token create, list, show and revoke, by id and by value on standard input", async () => {
    const args = ["token", "create", "acme/widgets", "--scopes", "contents:read", "--duration", "1h"];
    const made = await svc(
      [...args, "--session", "run-7", "--ip-allow", "127.0.0.1,::1", "--json"],
      client(),
    );
    assert.equal(made.code, 0, made.stderr);
    const { id, token } = JSON.parse(made.stdout) as { id: string; token: string };
    const shown = await svc(["token", "show", id], client());
    assert.match(
      shown.stdout,
      /repositories\s+acme\/widgets\n[^]*session\s+run-7\n[^]*addresses\s+127\.0\.0\.1, ::1/,
    );
    const listed = await svc(["token", "list", "--json"], client());
    assert.equal((JSON.parse(listed.stdout) as { id: string }[])[0]?.id, id);
    const shouted = await svc(["token", "revoke", token], client());
    assert.deepEqual([shouted.code, shouted.stderr.includes(token)], [2, false]);
    assert.equal((await svc(["token", "revoke"], client())).code, 2);
    const byValue = await run("sh", ["-c", `printf %s "$TOKEN" | "$SVC_LAUNCHER" token revoke --value`], {
      env: { ...process.env, ...client(), TOKEN: token, SVC_LAUNCHER },
    });
    assert.equal(byValue.code, 0, byValue.stderr);
    assert.equal((await svc(["token", "show", id], client())).code, 1);
    const agent = await svc([...args, "--agent"], client());
    assert.equal(agent.code, 1);
    assert.match(agent.stderr, /registered code-host app[^]*POST \/api\/apps/);
  });

  it("svc admin-token create, list and revoke", async () => {
    const made = await svc(["admin-token", "create", "backup", "--duration", "30d"], client());
    assert.match(made.stdout, /^svcr_\w+\n$/);
    const asRobot = { SVC_URL: service.url, SVC_TOKEN: made.stdout.trim() };
    const listed = await svc(["admin-token", "list", "--json"], asRobot);
    const [entry] = JSON.parse(listed.stdout) as { id: string; name: string }[];
    assert.equal(entry?.name, "backup");
    assert.equal((await svc(["admin-token", "revoke", entry?.id ?? ""], client())).code, 0);
    assert.equal((await svc(["admin-token", "list"], asRobot)).code, 1);
  });

  it("git.fetch, git.push and denials are audited once each; a challenge is not", async () => {
    const scopes = { repository: "acme/widgets", scopes: "contents:write", duration: "1h" };
    const { token, id } = (await call(service, "POST", "/api/tokens", admin, scopes)) as unknown as {
      token: string;
      id: string;
    };
    await call(service, "POST", "/api/cached-repos", admin, { owner: "acme", name: "widgets" });
    const from = new Date().toISOString();
    const url = (userinfo: string): string =>
      `${service.url.replace("://", `://${userinfo}@`)}/acme/widgets.git`;
    const path = join(folder.path, "pushed");
    await git(["clone", "--quiet", url(`x:${token}`), path]);
    await git([
      "-C",
      path,
      "-c",
      "user.name=a",
      "-c",
      "user.email=a@b",
      "commit",
      "--allow-empty",
      "-qm",
      "x",
    ]);
    await git(["-C", path, "push", "--quiet", "origin", "HEAD"]);
    // One of sixty-two ends with an x itself.
    const other = token.slice(0, -1) + (token.endsWith("x") ? "y" : "x");
    await run("git", ["ls-remote", url(`x:${other}`)], { env: gitEnvironment() });
    // Anonymous, and only asked for a credential.
    await fetch(`${service.url}/acme/widgets.git/info/refs?service=git-upload-pack`);
    const found = await audited(`from=${from}&target=acme/widgets`, 3);
    const actions = found.map(({ action, outcome, actor }) => {
      const { kind, login: who, credential_id: credential } = actor as Record<string, unknown>;
      return [action, outcome, kind, who, credential === id];
    });
    assert.deepEqual(actions.toReversed(), [
      ["git.fetch", "allowed", "proxy_token", "root", true],
      ["git.push", "allowed", "proxy_token", "root", true],
      ["access.denied", "denied", "anonymous", null, false],
    ]);
  });

  it("a reload of the configuration is audited", async () => {
    process.kill(service.pid, "SIGHUP");
    const found = await audited("action=configuration.reloaded", 1);
    assert.deepEqual(
      found.map(({ actor }) => (actor as Record<string, unknown>)["kind"]),
      ["system"],
    );
  });

  it("rekey: with both keys it encrypts again at runtime, then the old key may go [svc 7.10]", async () => {
    await service.stop();
    const data = { SVC_DATA_DIR: dataDir() };
    const wrong = await svc(["rekey"], { ...data, SVC_ENCRYPTION_KEY: NEW_KEY });
    assert.equal(wrong.code, 1);
    assert.match(
      wrong.stderr,
      /encrypted with another key \(id [0-9a-f]{8}\)[^]*SVC_ENCRYPTION_KEY_PREVIOUS/,
    );
    assert.doesNotMatch(wrong.stderr, /0a0a0a|1b1b1b/);
    const both = { SVC_ENCRYPTION_KEY: NEW_KEY, SVC_ENCRYPTION_KEY_PREVIOUS: OLD_KEY };
    service = await start(both);
    const done = await svc(["rekey", "--json"], { ...data, ...both });
    assert.equal(done.code, 0, done.stderr);
    assert.equal((JSON.parse(done.stdout) as { encrypted: number }).encrypted, 1);
    const again = await svc(["rekey"], { ...data, ...both });
    assert.equal(again.stdout, "everything is under the current key\n");
    await service.stop();
    service = await start({ SVC_ENCRYPTION_KEY: NEW_KEY });
    const found = await audited("action=encryption.rekeyed", 1);
    assert.equal(found.length, 1);
    const request = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    assert.match(String((await call(service, "POST", "/api/tokens", admin, request))["token"]), /^svcx_/);
  });
});
