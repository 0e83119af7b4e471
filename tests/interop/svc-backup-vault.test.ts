import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  repositories,
  startCodeHost,
  startVault,
  SVC_LAUNCHER,
  tempFolder,
  until,
  type CodeHost,
  type TempFolder,
  type Vault,
} from "@devplat/testkit";
import {
  call,
  clone,
  HOST_TOKEN,
  KEY,
  mint,
  PASSPHRASE,
  signIn,
  sqliteKind,
  start,
  svc,
} from "./svc-backup-stand.ts";

/** Tokens of the backup whose restore is killed. To write them to Vault takes a second. */
const KILLED_TOKENS = 150;

let folder: TempFolder;
let host: CodeHost;
let vault: Vault;
let places = 0;
/** Service on an empty folder of Vault, without an encryption key. */
const newPlace = async (): Promise<Record<string, string>> => ({
  SVC_DATA_DIR: await mkdtemp(join(folder.path, "vault-")),
  SVC_DATABASE_DRIVER: "vault",
  SVC_DATABASE_DSN: vault.address,
  SVC_VAULT_TOKEN: vault.rootToken,
  SVC_VAULT_MOUNT: "kv",
  SVC_VAULT_PREFIX: `place-${++places}`,
});

async function namesBelow(path: string): Promise<readonly string[]> {
  const { body } = await vault.request("LIST", `kv/metadata/${path}`);
  const { keys = [] } = (body["data"] ?? {}) as { keys?: readonly string[] };
  const below = keys.map(async (key) =>
    key.endsWith("/") ? namesBelow(`${path}/${key.slice(0, -1)}`) : [`${path}/${key}`],
  );
  return (await Promise.all(below)).flat();
}

async function destroy({ SVC_VAULT_PREFIX = "", SVC_DATA_DIR = "" }: Record<string, string>): Promise<void> {
  for (const path of await namesBelow(SVC_VAULT_PREFIX)) await vault.request("DELETE", `kv/metadata/${path}`);
  assert.deepEqual(await namesBelow(SVC_VAULT_PREFIX), []);
  await rm(SVC_DATA_DIR, { recursive: true });
}

async function formOf({ SVC_VAULT_PREFIX = "" }: Record<string, string>): Promise<string> {
  return JSON.stringify(
    (await vault.request("GET", `kv/data/${SVC_VAULT_PREFIX}/form`)).body["data"] ?? null,
  );
}

const command = async (args: readonly string[], env: Record<string, string>): ReturnType<typeof svc> =>
  svc(args, { SVC_DEV_MODE: "true", SVC_BACKUP_PASSPHRASE: PASSPHRASE, ...env }, folder.path);
async function succeed(args: readonly string[], env: Record<string, string>): Promise<string> {
  const { code, stdout, stderr } = await command(args, env);
  assert.equal(code, 0, stderr);
  return stdout;
}

before(async () => {
  [folder, host, vault] = await Promise.all([tempFolder("svc-backup-vault"), startCodeHost(), startVault()]);
  host.addUser("root", HOST_TOKEN);
  await host.addRepository("acme", "widgets", { private: true, build: repositories.linear });
});
after(async () => {
  await vault?.stop();
  await host?.stop();
  await folder?.remove();
});

describe("svc backup of Vault, and svc restore", { timeout: 300_000 }, () => {
  let original: Record<string, string>;
  let file: string;
  const known = { session: "", token: "", revoked: "" };
  const statusOf = async (env: Record<string, string>, session: string): Promise<number> => {
    const service = await start(host, env);
    const { status } = await call(service, "GET", "/api/tokens", session);
    await service.stop();
    return status;
  };

  before(async () => {
    original = await newPlace();
    file = join(folder.path, "vault.age");
    const service = await start(host, original);
    known.session = await signIn(service);
    await call(service, "POST", "/api/cached-repos", known.session, { owner: "acme", name: "widgets" });
    known.token = (await mint(service, known.session)).token;
    const revoked = await mint(service, known.session);
    known.revoked = revoked.token;
    const output = await succeed(["backup", "-o", file], original);
    assert.match(output, /saved 1 user,/);
    await call(service, "DELETE", `/api/tokens/${revoked.id}`, known.session);
    await service.stop();
  });

  it("a place with content is refused, and with --replace revoked tokens stay revoked", async () => {
    const refused = await command(["restore", file], original);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the database is not empty \(users: 1, sessions: 1, tokens: 2/);
    const output = await succeed(["restore", file, "--replace", "--keep-tokens"], original);
    assert.match(output, /revoked 1 token/);
    const service = await start(host, original);
    const target = (name: string): string => join(folder.path, `replaced-${name}`);
    assert.equal(await clone(service, known.token, target("valid")), 0);
    assert.notEqual(await clone(service, known.revoked, target("revoked")), 0);
    const running = await command(["restore", file, "--replace"], original);
    assert.match(running.stderr, /instance\(s\) use the database/);
    await service.stop();
  });

  it("the original is destroyed: sessions and tokens have ended, and new ones clone", async () => {
    await destroy(original);
    const env = await newPlace();
    const output = await succeed(["restore", file], env);
    assert.match(output, /ended 1 session[^]*ended 2 token/);
    assert.equal(await statusOf(env, known.session), 401);
    const service = await start(host, env);
    assert.notEqual(await clone(service, known.token, join(folder.path, "ended")), 0);
    const { token } = await mint(service, await signIn(service));
    assert.equal(await clone(service, token, join(folder.path, "new")), 0);
    await service.stop();
  });

  it("with --keep-sessions and --keep-tokens the old ones are valid", async () => {
    const env = await newPlace();
    await succeed(["restore", file, "--keep-tokens", "--keep-sessions", "--keep-cache"], env);
    const service = await start(host, env);
    assert.equal(await clone(service, known.token, join(folder.path, "kept")), 0);
    const listed = await call(service, "GET", "/api/tokens", known.session);
    assert.equal(listed.status, 200);
    assert.match(JSON.stringify(listed.body), /acme\/widgets/);
    await service.stop();
  });

  it("goes into SQLite, and from there into Vault again", async () => {
    const sqlite = await sqliteKind(folder.path).create();
    await succeed(["restore", file, "--keep-tokens"], sqlite);
    const second = join(folder.path, "sqlite.age");
    await succeed(["backup", "-o", second, "--without-key"], sqlite);
    const back = await newPlace();
    const keyless = await command(["restore", second, "--keep-tokens"], back);
    assert.match(keyless.stderr, /encrypted with another key/);
    assert.equal(await formOf(back), "null", "nothing was written");
    await succeed(["restore", second, "--keep-tokens"], { ...back, SVC_ENCRYPTION_KEY: KEY });
    const service = await start(host, back);
    assert.equal(await clone(service, known.token, join(folder.path, "back")), 0);
    await service.stop();
  });

  it("--without-key needs a key: Vault has the secrets as plain text", async () => {
    const env = await newPlace();
    await succeed(["restore", file], env);
    const refused = await command(["backup", "-o", join(folder.path, "no.age"), "--without-key"], env);
    assert.match(refused.stderr, /Cannot leave the key out[^]*SVC_ENCRYPTION_KEY/);
    await succeed(["backup", "-o", join(folder.path, "no.age"), "--without-key"], {
      ...env,
      SVC_ENCRYPTION_KEY: KEY,
    });
  });
});

it("a killed restore leaves a place that nothing starts with, and is repeated", async () => {
  const source = await newPlace();
  const service = await start(host, source);
  const session = await signIn(service);
  await call(service, "POST", "/api/cached-repos", session, { owner: "acme", name: "widgets" });
  let token = "";
  for (let made = 0; made < KILLED_TOKENS; made++) token = (await mint(service, session)).token;
  const file = join(folder.path, "killed.age");
  await succeed(["backup", "-o", file], source);
  await service.stop();

  const target = await newPlace();
  const tokens = `${target["SVC_VAULT_PREFIX"] ?? ""}/tokens`;
  const child = spawn(SVC_LAUNCHER, ["restore", file, "--keep-tokens"], {
    cwd: folder.path,
    env: { ...process.env, SVC_DEV_MODE: "true", SVC_BACKUP_PASSPHRASE: PASSPHRASE, ...target },
    stdio: "ignore",
  });
  const ended = once(child, "exit");
  await until(async () => (await namesBelow(tokens)).length > 10);
  child.kill("SIGKILL");
  await ended;
  assert.match(await formOf(target), /restore_has_not_ended/);
  // The killed one keeps others from the database for some seconds.
  const early = await command(["restore", file, "--keep-tokens"], target);
  assert.match(early.stderr, /another restore uses the database/);
  for (const args of [["serve"], ["migrate", "up"], ["backup", "-o", join(folder.path, "half.age")]]) {
    const refused = await command(args, target);
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(refused.stderr, /a restore did not end[^]*svc restore/);
  }
  await until(async () => (await command(["restore", file, "--keep-tokens"], target)).code === 0);
  const names = await namesBelow(tokens);
  assert.equal(names.length, KILLED_TOKENS);
  const restored = await start(host, target);
  assert.equal(await clone(restored, token, join(folder.path, "after-kill")), 0);
  await restored.stop();
});

it("an instance that was silent reads and writes nothing while a restore runs", async () => {
  const target = await newPlace();
  const service = await start(host, target);
  const session = await signIn(service);
  for (let made = 0; made < KILLED_TOKENS; made++) await mint(service, session);
  const file = join(folder.path, "silent.age");
  await succeed(["backup", "-o", file], target);
  const late = await mint(service, session);
  process.kill(service.pid, "SIGSTOP");
  const restore = await heldRestore(target, file);
  try {
    process.kill(service.pid, "SIGCONT");
    const former = await namesBelow(target["SVC_VAULT_PREFIX"] ?? "");
    const request = { repository: "acme/widgets", scopes: "contents:read", duration: "1h" };
    for (let round = 0; round < 3; round++) {
      const { status } = await call(service, "POST", "/api/tokens?check=false", session, request);
      assert.equal(status, 503);
    }
    const isContent = (path: string): boolean =>
      !/\/(?:clock|instances\/.*|instance-figures\/.*)$/.test(path);
    const found = await namesBelow(target["SVC_VAULT_PREFIX"] ?? "");
    assert.deepEqual(found.filter(isContent), former.filter(isContent));
    await restore.goOn();
  } finally {
    restore.kill();
    process.kill(service.pid, "SIGCONT");
  }
  await until(async () => (await call(service, "GET", "/api/tokens", session)).status === 401);
  assert.notEqual(await clone(service, late.token, join(folder.path, "late")), 0);
  const { token } = await mint(service, await signIn(service));
  assert.equal(await clone(service, token, join(folder.path, "after-silence")), 0);
  await service.stop();
  const tokens = await namesBelow(`${target["SVC_VAULT_PREFIX"] ?? ""}/tokens`);
  assert.equal(tokens.length, KILLED_TOKENS + 1);
});

/**
 * A restore that begins when no instance has reported for some time, and is stopped (SIGSTOP) when it has replaced a user. It has
 * looked for instances then: one that was stopped before finds the instance that continues, and is refused.
 */
async function heldRestore(
  target: Record<string, string>,
  file: string,
): Promise<{ readonly goOn: () => Promise<void>; readonly kill: () => void }> {
  const env = { ...process.env, SVC_DEV_MODE: "true", SVC_BACKUP_PASSPHRASE: PASSPHRASE, ...target };
  const [user = assert.fail("there is no user")] = await namesBelow(
    `${target["SVC_VAULT_PREFIX"] ?? ""}/users`,
  );
  const former = await versionOf(user);
  for (;;) {
    const child = spawn(SVC_LAUNCHER, ["restore", file, "--replace"], {
      cwd: folder.path,
      env,
      stdio: "ignore",
    });
    const ended = once(child, "exit") as Promise<[number | null]>;
    await until(async () => child.exitCode !== null || (await versionOf(user)) > former);
    if (child.exitCode !== null) {
      assert.equal(child.exitCode, 1, "an instance still counts as running");
      continue;
    }
    child.kill("SIGSTOP");
    assert.match(await formOf(target), /has_not_ended/);
    return {
      async goOn() {
        child.kill("SIGCONT");
        assert.deepEqual(await ended, [0, null]);
      },
      kill: () => void child.kill("SIGKILL"),
    };
  }
}

async function versionOf(path: string): Promise<number> {
  const { body } = await vault.request("GET", `kv/metadata/${path}`);
  return (body["data"] as { current_version: number }).current_version;
}
