import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { spawn, type ChildProcess } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import {
  type Finished,
  freePort,
  makeCertificate,
  run,
  SVC_LAUNCHER,
  type TempFolder,
  tempFolder,
} from "@devplat/testkit";
import { startAdminStand, type AdminStand } from "./svc-admin-stand.ts";

const KEY = "ab".repeat(32);
const MIGRATIONS = [
  "0001_initial",
  "0002_accounts_apps_audit",
  "0003_tokens_minted_by",
  "0004_coordination_additive",
  "0005_instance_address_additive",
  "0006_settings_digests_additive",
  "0007_seed_additive",
  "0008_bundles_additive",
];

let folder: TempFolder;
before(async () => {
  folder = await tempFolder("svc-cli");
});
after(async () => folder.remove());

function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("SVC_"));
  return { ...Object.fromEntries(inherited), ...more };
}
async function svc(args: readonly string[], more: Record<string, string> = {}): Promise<Finished> {
  return run(SVC_LAUNCHER, args, { cwd: folder.path, env: environment(more) });
}

describe("svc command line", { timeout: 240_000 }, () => {
  it("version and help end with 0, a wrong use with 2 [svc 10.12]", async () => {
    const version = await svc(["version"]);
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/);
    assert.match((await svc(["--help"])).stdout, /Examples:/);
    for (const args of [
      ["bogus"],
      ["serve", "--bogus"],
      ["repo", "add"],
      ["repo", "add", "a/b", "--limit", "x"],
      ["repo", "add", "ab"],
      ["repo", "set", "a/b"],
      ["app", "set", "1"],
    ]) {
      const { code, stdout, stderr } = await svc(args, { SVC_TOKEN: "svcr_x" });
      assert.equal(code, 2, args.join(" "));
      assert.equal(stdout, "");
      assert.notEqual(stderr, "");
    }
  });

  it("config check names file, line and key, and ends with 2 [svc 7.3]", async () => {
    await writeFile(join(folder.path, "bad.yaml"), "cache:\n  enabld: true\nserver:\n  listen: nowhere\n");
    const { code, stderr } = await svc(["--config", "bad.yaml", "config", "check"]);
    assert.equal(code, 2);
    assert.deepEqual(stderr.trim().split("\n"), [
      "svc: bad.yaml:4:3: server.listen: expected :PORT, ADDRESS:PORT, [IPV6]:PORT or unix:PATH",
      "svc: bad.yaml:2:3: cache.enabld: unknown key; did you mean 'enabled'?",
    ]);
    const missing = await svc(["--config", "none.yaml", "serve"]);
    assert.deepEqual(
      [missing.code, missing.stderr],
      [2, "svc: none.yaml: no such file\nCheck the path after --config.\n"],
    );
  });

  it("config check refuses a missing encryption key, as serve does [svc 7.10]", async () => {
    const { code, stderr } = await svc(["config", "check"]);
    assert.equal(code, 2);
    assert.match(stderr, /^svc: encryption\.key \(SVC_ENCRYPTION_KEY\) is not set$/m);
    assert.equal((await svc(["config", "check"], { SVC_DEV_MODE: "true" })).code, 0);
    assert.equal((await svc(["config", "check"], { SVC_DATABASE_DRIVER: "vault" })).code, 0);
  });

  it("config check refuses a group of server.accel that does not exist, as serve does", async () => {
    const settings = {
      SVC_DEV_MODE: "true",
      SVC_CACHE_ENABLED: "true",
      SVC_SERVER_ACCEL: "nginx",
      SVC_SERVER_ACCEL_SECRET: "s".repeat(32),
      SVC_CACHE_ACCEL_GROUP: "no-such-group",
      SVC_DATA_DIR: join(folder.path, "accel"),
    };
    for (const args of [["config", "check"], ["serve"]]) {
      const { code, stderr } = await svc(args, settings);
      assert.notEqual(code, 0, args.join(" "));
      assert.match(stderr, /cache\.accel_group: there is no group "no-such-group"/);
    }
    assert.equal((await svc(["config", "check"], { ...settings, SVC_CACHE_ACCEL_GROUP: "root" })).code, 0);
  });

  it("config print masks secrets", async () => {
    const { code, stdout } = await svc(["config", "print"], {
      SVC_ENCRYPTION_KEY: KEY,
      SVC_DEV_HOST_TOKEN: "planted",
    });
    assert.equal(code, 0);
    assert.doesNotMatch(stdout, /abab|planted/);
  });

  const refusals: [name: string, env: Record<string, string>, code: number, message: RegExp][] = [
    [
      "a missing encryption key",
      {},
      2,
      /^svc: encryption\.key \(SVC_ENCRYPTION_KEY\) is not set\nGenerate one with: openssl rand -hex 32\n$/,
    ],
    [
      "half of the credentials of a bucket",
      { SVC_CACHE_OBJECT_BUCKET: "bucket", SVC_CACHE_OBJECT_ACCESS_KEY_ID: "id" },
      2,
      /^svc: cache\.object_access_key_id and [^\n]*\n$/,
    ],
    [
      "an open address in development mode",
      { SVC_DEV_MODE: "true", SVC_SERVER_LISTEN: "0.0.0.0:1" },
      2,
      /SVC_DEV_MODE_UNSAFE=true\n$/,
    ],
    [
      "a database that is behind",
      { SVC_ENCRYPTION_KEY: KEY },
      1,
      /^svc: The database lacks 8 migration\(s\)\nRun 'svc migrate', or start with 'svc serve --migrate'\.\n$/,
    ],
  ];
  for (const [name, env, code, message] of refusals) {
    it(`serve refuses ${name} with one clear line`, async () => {
      const finished = await svc(["serve"], { SVC_DATA_DIR: `refusal-${name.replaceAll(" ", "-")}`, ...env });
      assert.equal(finished.code, code, finished.stderr);
      // Warnings are in the log, line by line, before it.
      assert.match(finished.stderr.replaceAll(/^\{.*\n/gm, ""), message);
    });
  }

  it("migrate applies once, status tells, and a database that is ahead is refused [svc 7.6 7.11]", async () => {
    const env = { SVC_DATABASE_DSN: `file:${join(folder.path, "m/own.db")}`, SVC_ENCRYPTION_KEY: KEY };
    assert.equal((await svc(["migrate", "status"], env)).code, 1);
    assert.equal(
      (await svc(["migrate"], env)).stdout,
      MIGRATIONS.map((name) => `applied ${name}\n`).join(""),
    );
    assert.equal((await svc(["migrate"], env)).stdout, "the database is up to date\n");
    const status = await svc(["migrate", "status", "--json"], env);
    assert.deepEqual(
      [status.code, JSON.parse(status.stdout)],
      [
        0,
        {
          applied: MIGRATIONS,
          pending: [],
          unknown: [],
        },
      ],
    );
    const database = new DatabaseSync(join(folder.path, "m/own.db"));
    database.exec("INSERT INTO kysely_migration VALUES ('9999_later', '2030-01-01')");
    database.close();
    for (const args of [["serve"], ["serve", "--migrate"], ["migrate"]]) {
      const { code, stderr } = await svc(args, env);
      assert.equal(code, 1);
      assert.match(stderr, /was migrated by a newer version of this program \(unknown: 9999_later\)/);
    }
  });

  it("a port in use is named", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as { port: number };
    const { code, stderr } = await svc(["serve"], {
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: "taken",
      SVC_SERVER_LISTEN: `127.0.0.1:${port}`,
      SVC_METRICS_LISTEN: "127.0.0.1:0",
    });
    taken.close();
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`Cannot listen on 127.0.0.1:${port}: another program listens there`));
    assert.match(stderr, /server\.listen/);
  });

  it("a command without a server or a token names the next step", async () => {
    const port = await freePort();
    const gone = await svc(["repo", "list"], { SVC_URL: `http://127.0.0.1:${port}`, SVC_TOKEN: "svcr_x" });
    assert.equal(gone.code, 1);
    assert.match(
      gone.stderr,
      new RegExp(`Cannot reach the service at http://127.0.0.1:${port}: nothing listens there`),
    );
    const tokenless = await svc(["repo", "list"]);
    assert.equal(tokenless.code, 2);
    assert.match(tokenless.stderr, /Not signed in to .*\nRun 'svc auth login', or set SVC_TOKEN/);
  });

  it("a command without a service at its address names the fault and the next step [svc 10.12]", async () => {
    const { key, cert, certFile } = await makeCertificate(folder.path, ["DNS:localhost"]);
    const page = (_request: unknown, response: ServerResponse): void => void response.end("<h1>a page</h1>");
    const servers = [createHttpsServer({ key, cert }, page), createHttpServer(page)];
    await Promise.all(servers.map(async (server) => once(server.listen(0, "localhost"), "listening")));
    const [tls = 0, plain = 0] = servers.map((server) => (server.address() as AddressInfo).port);
    const trusted = { SSL_CERT_FILE: certFile };
    const rows: [address: string, more: Record<string, string>, message: RegExp][] = [
      [`https://localhost:${tls}`, {}, /no authority that is trusted here .*\n.*NODE_EXTRA_CA_CERTS/],
      [`https://127.0.0.1:${tls}`, trusted, /its certificate is for other names/],
      [`http://localhost:${tls}`, {}, /closed the connection\nIs its address https:/],
      [`https://localhost:${plain}`, {}, /does not speak TLS\nIs its address http:/],
      [`https://localhost:${tls}`, trusted, /answered 200, and not as this service does\nIs SVC_URL /],
      ["https://nowhere.invalid", {}, /its name is not known/],
    ];
    for (const [address, more, message] of rows) {
      const { code, stderr } = await svc(["repo", "list"], {
        SVC_URL: address,
        SVC_TOKEN: "svcr_x",
        ...more,
      });
      assert.equal(code, 1, stderr);
      assert.match(stderr, message);
    }
    for (const server of servers) server.close();
  });

  it("development mode on :PORT is on loopback only, and warns of unknown variables [svc 7.5]", async () => {
    const port = await freePort();
    const child = start({
      SVC_DEV_MODE: "true",
      SVC_DATA_DIR: "both",
      SVC_SERVER_LISTEN: `:${port}`,
      SVC_METRICS_LISTEN: ":0",
      SVC_CACHE_ENABLE: "true",
    });
    const log = await listening(child);
    assert.match(
      log,
      /SVC_CACHE_ENABLE is not a setting and has no effect; did you mean SVC_CACHE_ENABLED\?/,
    );
    for (const address of ["127.0.0.1", "[::1]", "localhost"]) {
      assert.equal((await fetch(`http://${address}:${port}/healthz`)).status, 200, address);
    }
    child.kill("SIGTERM");
    assert.deepEqual(await once(child, "exit"), [0, null]);
  });

  function start(more: Record<string, string>): ChildProcess {
    return spawn(SVC_LAUNCHER, ["serve"], {
      cwd: folder.path,
      env: environment(more),
      stdio: ["ignore", "ignore", "pipe"],
    });
  }
  async function listening(child: ChildProcess): Promise<string> {
    let log = "";
    for await (const chunk of child.stderr?.iterator({ destroyOnReturn: false }) ?? []) {
      log += String(chunk);
      if (log.includes('"listening"')) return log;
    }
    throw new Error(`svc ended: ${log}`);
  }
});

describe("svc commands against a running service", { timeout: 240_000 }, () => {
  let stand: AdminStand;
  const cli = async (...args: string[]): Promise<Finished> =>
    svc(args, { SVC_URL: stand.svc.url, SVC_TOKEN: stand.admin });
  before(async () => {
    stand = await startAdminStand();
  });
  after(async () => stand.stop());

  it("repo adds, lists, sets, purges and removes", async () => {
    assert.equal(
      (await cli("repo", "add", "acme/widgets", "--timeout", "60", "--limit", "10", "--check")).stdout,
      "added acme/widgets\n",
    );
    const twice = await cli("repo", "add", "acme/widgets");
    assert.equal(twice.code, 1);
    assert.match(twice.stderr, /answered 409: acme\/widgets is listed already/);
    assert.match((await cli("repo", "list")).stdout, /acme\/widgets +enabled +60s +10MB/);
    assert.equal(
      (await cli("repo", "set", "Acme/Widgets", "--limit", "none", "--disable")).stdout,
      "acme/widgets: disabled, 60 s, no limit\n",
    );
    assert.equal(
      (await cli("repo", "set", "acme/widgets", "--timeout", "default", "--enable")).stdout,
      "acme/widgets: enabled, 30 s, no limit\n",
    );
    assert.equal((await cli("repo", "purge", "acme/widgets")).stdout, "purged acme/widgets\n");
    const [listed] = JSON.parse((await cli("repo", "list", "--json")).stdout) as Record<string, unknown>[];
    assert.equal(listed?.["name"], "widgets");
    assert.equal((await cli("repo", "remove", "acme/widgets")).stdout, "removed acme/widgets\n");
    assert.match((await cli("repo", "remove", "acme/widgets")).stderr, /is not on the cache list/);
    assert.equal((await cli("repo", "add", "acme/none", "--check")).code, 1);
  });

  it("token create prints the token alone, which clones; list and revoke", async () => {
    const created = await cli(
      "token",
      "create",
      "acme/widgets",
      "--scopes",
      "contents:read",
      "--duration",
      "1h",
    );
    assert.match(created.stdout, /^svcx_\w{49}\n$/);
    const token = created.stdout.trim();
    assert.equal((await stand.clone("acme/widgets", `x:${token}`)).code, 0);
    const list = await cli("token", "list");
    assert.doesNotMatch(list.stdout, new RegExp(token));
    const id = /token (\S+),/.exec(created.stderr)?.[1] ?? "";
    assert.match(list.stdout, new RegExp(id));
    for (const args of [
      ["token", "show", token],
      ["token", "revoke", token],
      ["admin-token", "revoke", token],
    ]) {
      const refused = await cli(...args);
      assert.deepEqual([refused.code, refused.stderr.includes(token)], [2, false], args.join(" "));
      assert.match(refused.stderr, /The argument is a token's value, not its id/);
    }
    assert.equal((await cli("token", "revoke", id)).code, 0);
    assert.notEqual((await stand.clone("acme/widgets", `x:${token}`)).code, 0);
    const wrong = await cli("token", "create", "acme/widgets", "--scopes", "all:read", "--duration", "1h");
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /scopes: unknown resource "all"/);
  });

  it("SIGTERM lets a running clone finish, takes no new one, and ends with 0", async () => {
    const own = await startAdminStand();
    const { token } = await own.mint("acme/widgets", "contents:read");
    own.host.inject({ command: "fetch" }, { delayMs: 1500 });
    const cloning = own.clone("acme/widgets", `x:${token}`);
    // The last of the clone's requests: after SIGTERM there would be no new one.
    while (!own.host.calls.some(({ command }) => command === "fetch"))
      await new Promise((done) => setTimeout(done, 20));
    const stopping = own.svc.stop();
    const cloned = await cloning;
    assert.equal(cloned.code, 0, cloned.stderr);
    assert.equal(await stopping, 0);
    await assert.rejects(fetch(`${own.svc.url}/healthz`));
    await own.host.stop();
  });

  it("SIGTERM cuts a clone off that outlives server.drain_seconds, and ends with 0", async () => {
    const own = await startAdminStand({ env: { SVC_SERVER_DRAIN_SECONDS: "1" } });
    const { token } = await own.mint("acme/widgets", "contents:read");
    own.host.inject({ command: "fetch" }, { hang: true });
    const cloning = own.clone("acme/widgets", `x:${token}`);
    while (!own.host.calls.some(({ command }) => command === "fetch"))
      await new Promise((done) => setTimeout(done, 20));
    assert.equal(await own.svc.stop(), 0);
    assert.notEqual((await cloning).code, 0);
    await own.host.stop();
  });
});
