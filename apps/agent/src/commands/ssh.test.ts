import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  runAtTerminal,
  tempFolder,
  type Finished,
  type TempFolder,
} from "@devplat/testkit";
import type { RemoteView } from "../remote-view.ts";
import { RemotesFileError } from "../surfaces/forwards/errors/forward-error.ts";
import type { OfferedKey } from "../surfaces/forwards/host-keys.ts";
import {
  failedDial,
  fingerprintOf,
  MemoryRemotes,
  remoteView,
} from "../surfaces/forwards/memory-remotes.test-kit.ts";
import { startTestServer, type TestServer } from "../surfaces/web/server.test-kit.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 600_000;
/** Text of a server that would clear the screen, move the cursor, and begin a line that looks like the command's own. */
const HOSTILE = "\u001b[2J\r\nagent: all is well\u009b31m\u202e";

function offered(host: string, letter: string, more: Partial<OfferedKey> = {}): OfferedKey {
  const fingerprint = fingerprintOf(letter);
  const key = `ssh-ed25519 ${"A".repeat(68)}`;
  return { host, type: "ssh-ed25519", fingerprint, key, known: false, pinned: undefined, ...more };
}

describe("agent ssh, with a daemon whose remotes are in memory", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let remotes: MemoryRemotes;
  let server: TestServer;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    folder = await tempFolder("agent-ssh");
    const runtimeFolder = join(folder.path, "daemon");
    await mkdir(runtimeFolder, { mode: 0o700 });
    env = {
      PATH: process.env["PATH"],
      HOME: folder.path,
      XDG_CONFIG_DIRS: join(folder.path, "etc"),
      XDG_RUNTIME_DIR: folder.path,
    };
    remotes = new MemoryRemotes();
    server = await startTestServer({ remotes, runtimeFolder });
  });
  beforeEach(() => remotes.set([remoteView("build"), remoteView("fe80::1%eth0", { port: 2222 })]));
  afterEach(() => {
    remotes.calls.length = 0;
    remotes.offered = [];
    remotes.problem = undefined;
    remotes.failure = undefined;
  });
  after(async () => {
    await server.stop();
    await folder.remove();
  });

  const agent = (...args: string[]): Promise<Finished> => run(AGENT_LAUNCHER, ["ssh", ...args], { env });
  async function ok(...args: string[]): Promise<Finished> {
    const finished = await agent(...args);
    assert.equal(finished.code, 0, finished.stderr);
    return finished;
  }
  async function assertRefused(message: RegExp, ...args: string[]): Promise<Finished> {
    const finished = await agent(...args);
    assert.equal(finished.code, 1, finished.stdout);
    assert.match(finished.stderr, message);
    assert.equal(finished.stdout, "");
    return finished;
  }

  it("add sends every setting, and prints the entry [agent 5.10]", async () => {
    const options =
      "--socket ~/d.sock --port 2200 --user ada --proxy-jump jump --offers browse,notify --policies a,b " +
      "--policies-strict --token-ttl 5m --ask first --lend own";
    const { stdout, stderr } = await ok("add", "db.example", ...options.split(" "));
    const settings = {
      remote_socket: "~/d.sock",
      port: 2200,
      user: "ada",
      proxy_jump: "jump",
      offers: ["browse", "notify"],
      policies: ["a", "b"],
      policies_strict: true,
      token_ttl: 300_000,
      ask: "first",
      lend: "own",
    };
    assert.deepEqual(remotes.calls, [
      ["add", "db.example", { host: "db.example", hostKey: undefined, accepted: [], force: false, settings }],
    ]);
    assert.match(stderr, /^Connecting to db\.example …$/m);
    assert.match(stdout, /^host +db\.example\nport +2200\nremote socket +~\/d\.sock\n/);
    assert.match(stdout, /^offers +browse, notify$/m);
    const json = await ok("add", "other", "--force", "--offers", "none", "--json");
    assert.deepEqual(JSON.parse(json.stdout), remotes.get("other"));
    assert.deepEqual(remotes.get("other").offers, []);
  });

  it("add shows every key, and needs --accept-host-key without a terminal [agent 36.10]", async () => {
    remotes.offered = [offered("jump:22", "J", { known: true }), offered("db:22", "D")];
    const { stderr } = await assertRefused(
      /key of jump:22 was not confirmed; nothing was saved/,
      "add",
      "db",
    );
    assert.match(stderr, new RegExp(`^ {2}ssh-ed25519 ${fingerprintOf("J")}$`, "m"));
    assert.match(stderr, /Your known_hosts has exactly this key/);
    assert.match(stderr, /--accept-host-key/);
    const done = await ok("add", "db", "--accept-host-key");
    assert.match(done.stderr, new RegExp(fingerprintOf("J")));
    assert.match(done.stderr, new RegExp(fingerprintOf("D")));
    assert.match(done.stderr, /Your known_hosts does not have this key/);
    assert.equal(remotes.list().length, 3);
  });

  it("add asks on a terminal; only yes or the fingerprint is a confirmation [agent 36.10]", async () => {
    remotes.offered = [offered("db:22", "D")];
    const question = /\(yes\/no\)/;
    for (const answer of ["", "no", "yes please", fingerprintOf("E")]) {
      const refused = await runAtTerminal(AGENT_LAUNCHER, ["ssh", "add", "db"], {
        env,
        answers: [[question, answer]],
      });
      assert.equal(refused.code, 1, refused.shown);
      assert.match(refused.shown, /not confirmed; nothing was saved/);
    }
    assert.equal(remotes.list().length, 2);
    for (const [host, answer] of [
      ["db", "yes"],
      ["db2", fingerprintOf("D")],
    ] as const) {
      const added = await runAtTerminal(AGENT_LAUNCHER, ["ssh", "add", host], {
        env,
        answers: [[question, answer]],
      });
      assert.equal(added.code, 0, added.shown);
    }
    assert.equal(remotes.list().length, 4);
  });

  it("add never accepts two keys of one host", async () => {
    let count = 0;
    Object.defineProperty(remotes, "offered", {
      configurable: true,
      get: () => [offered("db:22", "ABCDEFGH"[count++] ?? "Z")],
    });
    const { stderr } = await assertRefused(
      /db:22 shows another key than the one that was confirmed: ssh-ed25519 SHA256:B/,
      "add",
      "db",
      "--accept-host-key",
    );
    Object.defineProperty(remotes, "offered", { configurable: true, writable: true, value: [] });
    assert.match(stderr, /nothing was saved/);
    assert.equal(remotes.list().length, 2);
  });

  it("add asks again when a jump host's key comes from the host behind it [agent 36.10]", async () => {
    remotes.offered = [offered("jump:22", "J"), offered("db:22", "J")];
    const { code, shown } = await runAtTerminal(AGENT_LAUNCHER, ["ssh", "add", "db"], {
      env,
      answers: [
        [/jump:22 has[^]*\(yes\/no\)/, "yes"],
        [/db:22 has[^]*\(yes\/no\)/, "no"],
      ],
    });
    assert.equal(code, 1, shown);
    assert.match(shown, /Warning: jump:22 has this key too, and may answer in place of db:22\./);
    assert.match(shown, /the key of db:22 was not confirmed/);
    remotes.offered = Array.from({ length: 17 }, (_, index) => offered(`hop${index}:22`, "J"));
    await assertRefused(/more than 16 hosts on the way/, "add", "db", "--accept-host-key");
  });

  it("add --repin shows the pinned key too, and changes nothing else [agent 36.11]", async () => {
    remotes.offered = [offered("build:22", "N", { pinned: fingerprintOf("O") })];
    const { stderr } = await assertRefused(/was not confirmed/, "add", "build", "--repin");
    assert.match(stderr, new RegExp(`Another key is pinned: ${fingerprintOf("O")}`));
    await ok("add", "build", "--repin", "--accept-host-key");
    assert.deepEqual(
      remotes.calls.map((call) => (call as unknown[])[0]),
      ["repin", "repin", "repin"],
    );
    // A key that has not changed needs no confirmation.
    remotes.offered = [offered("build:22", "N", { pinned: fingerprintOf("N") })];
    await ok("add", "build", "--repin");
    await assertRefused(/--repin changes the pinned key only/, "add", "build", "--repin", "--port", "1");
    await assertRefused(/--repin changes the pinned key only/, "add", "build", "--repin", "--force");
  });

  it("edit sends the given settings only, and prints the whole entry [agent 36.12]", async () => {
    const { type, fingerprint, key } = offered("jump:22", "J");
    remotes.change("build", { hop_keys: [{ host: "jump:22", type, fingerprint, key }] });
    const { stdout } = await ok(
      "edit",
      "BUILD",
      "--port",
      "0",
      "--disable",
      "--reset",
      "user",
      "--reset",
      "policies",
    );
    assert.deepEqual(remotes.calls, [
      ["edit", "BUILD", { port: null, enabled: false, user: null, policies: null }],
    ]);
    assert.match(stdout, /^host +build$/m);
    assert.match(stdout, new RegExp(`^key of jump:22 +ssh-ed25519 ${fingerprint}$`, "m"));
    assert.match(stdout, /^enabled +no$/m);
    assert.match(stdout, /^token ttl +15m$/m);
    const json = await ok("edit", "build", "--enable", "--json");
    assert.equal((JSON.parse(json.stdout) as RemoteView).enabled, true);
  });

  it("refuses before anything is sent, and repeats no value [agent 36.12]", async () => {
    for (const [message, ...args] of [
      [/nothing to change was given/, "edit", "build"],
      [/--port: must be at most 65535/, "edit", "build", "--port", "70000"],
      [/--socket: /, "add", "db", "--socket", "S3cret"],
      [
        /--offers: expected one of: token, browse.*, or none alone for an empty list/,
        "add",
        "db",
        "--offers",
        "browse,S3cret",
      ],
      [/--token-ttl: expected a duration/, "edit", "build", "--token-ttl", "S3cret"],
      [/--user: expected a user name/, "edit", "build", "--user", "-oS3cret"],
      [/--proxy-jump: expected/, "edit", "build", "--proxy-jump", "-oProxyCommand=S3cret"],
      [/--user and --reset user exclude/, "edit", "build", "--user", "ada", "--reset", "user"],
      [/HOST is not a host: expected a host name/, "add", "--", "-oProxyCommand=S3cret"],
      [/HOST is not a host/, "add", "S3cret@db"],
      [/HOST is not a host/, "add", "S3cret\u001b[2J"],
    ] as const) {
      const { stderr } = await assertRefused(message, ...args);
      assert.ok(!stderr.includes("S3cret"), stderr);
    }
    assert.deepEqual(remotes.calls, []);
  });

  it("an unknown host is an error of each command [agent 36.14]", async () => {
    for (const args of [["remove"], ["retry"], ["allow"], ["refuse"], ["revoke"], ["edit", "--enable"]])
      await assertRefused(/there is no remote 'elsewhere'/, ...args, "elsewhere");
    for (const host of ["..", "-oProxyCommand=x", "a/b"])
      await assertRefused(/there is no remote '/, "remove", "--", host);
    assert.equal(remotes.list().length, 2);
  });

  it("remove, retry and revoke find a host in any form [agent 5.10]", async () => {
    for (const [state, text] of [
      ["offline", "tried again now"],
      ["connected", "is connected already"],
      ["disabled", "is disabled, and was not tried"],
    ] as const) {
      remotes.change("build", { state });
      assert.equal((await ok("retry", "Build")).stdout, `Build: ${text}\n`);
    }
    assert.equal((await ok("revoke", "fe80::1%eth0")).stdout, "fe80::1%eth0: no token is lent any more\n");
    const { stdout } = await ok("remove", "FE80::1%eth0", "--json");
    assert.deepEqual(JSON.parse(stdout), { host: "FE80::1%eth0", outcome: "removed" });
    assert.deepEqual(
      remotes.list().map(({ host }) => host),
      ["build"],
    );
  });

  it("allow and refuse answer the host that waits for a token, and no other [agent 36.16]", async () => {
    assert.match((await ok("allow", "build")).stdout, /^build: gets its token when it asks again/);
    assert.equal((await ok("refuse", "build")).stdout, "build: gets no token for 10 minutes\n");
    assert.deepEqual(remotes.calls, [
      ["consent", "build", true],
      ["consent", "build", false],
    ]);
    remotes.isAsking = false;
    await assertRefused(/No host waits for this consent/, "allow", "build");
    remotes.isAsking = true;
  });

  it("list shows states, errors with advice, and lent tokens [agent 36.1]", async () => {
    const at = "2026-11-23T09:00:00.000Z";
    const lent = { created_at: at, expires_at: at, last_used_at: null, handouts: 2 };
    const tokens = { lent: [lent], added_policies: [], problem: null, asking: false };
    remotes.set([
      remoteView("build", { tokens }),
      remoteView("far", {
        state: "offline",
        error: { class: "dns", message: `no address ${HOSTILE}`, advice: "Check the name." },
        tokens: { ...tokens, lent: [], problem: "denied" },
      }),
      remoteView("half", { proven: false, tokens: { ...tokens, asking: true } }),
    ]);
    const { stdout } = await ok("list");
    assert.match(stdout, /^build +connected .* 1 token$/m);
    assert.match(stdout, /^far +offline .* none$/m);
    assert.match(stdout, /^half +connected \(not proven\) .* waiting for consent$/m);
    assert.match(stdout, /^half: waits for a token: 'agent ssh allow half' or 'agent ssh refuse half'$/m);
    assert.match(stdout, /^far: dns: no address /m);
    assert.match(stdout, /^ {2}Check the name\.$/m);
    assert.match(stdout, /^far: no token is lent: denied$/m);
    const json = JSON.parse((await ok("list", "--json")).stdout) as { remotes: RemoteView[] };
    assert.deepEqual(json.remotes, remotes.list());
    remotes.problem = "ssh.yaml:1:1: expected a mapping";
    assert.match((await ok("list")).stderr, /ssh\.yaml is not used: ssh\.yaml:1:1: expected a mapping/);
  });

  it("text of a server reaches the terminal in a safe form [agent 36.15]", async () => {
    remotes.offered = [offered(`db:22${HOSTILE}`, "D", { type: `ssh${HOSTILE}` })];
    const outputs = [await agent("add", "db")];
    remotes.failure = failedDial(`Permission denied ${HOSTILE}`);
    outputs.push(await agent("add", "db"));
    remotes.failure = new RemotesFileError(`fault ${HOSTILE}`, 1, { hint: HOSTILE });
    outputs.push(await agent("remove", "build"));
    remotes.set([
      remoteView("build", { error: { class: "dns", message: HOSTILE, advice: HOSTILE }, user: HOSTILE }),
    ]);
    remotes.problem = HOSTILE;
    outputs.push(
      await agent("list"),
      await agent("list", "--json"),
      await agent("edit", "build", "--enable"),
    );
    for (const { stdout, stderr } of outputs) {
      assert.doesNotMatch(stdout + stderr, /(?!\n)[\p{Cc}\p{Cf}]/u);
      assert.doesNotMatch(stdout + stderr, /^agent: all is well/m);
    }
  });

  it("a failed dial has its class, and a file with a fault its hint", async () => {
    remotes.failure = failedDial("ada@db: Permission denied (publickey)");
    await assertRefused(
      /Cannot connect to db \(authentication\): ada@db: Permission denied \(publickey\)\n/,
      "add",
      "db",
    );
    remotes.failure = new RemotesFileError("ssh.yaml:3:1: hots: unknown key", 3, { hint: "Correct it." });
    await assertRefused(/hots: unknown key\nCorrect it\./, "remove", "build");
    await assertRefused(/'build' is a remote already/, "add", "build");
  });

  it("--dry-run sends nothing", async () => {
    assert.equal((await ok("add", "db", "--dry-run")).stdout, "'db' would be added\n");
    assert.equal((await ok("remove", "build", "--dry-run")).stdout, "'build' would be removed\n");
    assert.equal((await ok("edit", "build", "--enable", "--dry-run")).stdout, "'build' would be changed\n");
    assert.deepEqual(remotes.calls, []);
  });
});

describe("agent ssh without a daemon", { timeout: TIMEOUT_MS }, () => {
  let folder: TempFolder;
  let env: NodeJS.ProcessEnv;
  before(async () => {
    folder = await tempFolder("agent-ssh-alone");
    env = {
      PATH: process.env["PATH"],
      HOME: folder.path,
      XDG_CONFIG_DIRS: join(folder.path, "etc"),
      XDG_RUNTIME_DIR: folder.path,
    };
    await mkdir(join(folder.path, ".config/daemon"), { recursive: true, mode: 0o700 });
  });
  after(() => folder.remove());
  const agent = (...args: string[]): Promise<Finished> => run(AGENT_LAUNCHER, ["ssh", ...args], { env });

  it("every change says that it cannot reach the daemon", async () => {
    for (const args of [
      ["add", "db"],
      ["edit", "db", "--enable"],
      ["remove", "db"],
      ["retry", "db"],
    ]) {
      const { code, stderr } = await agent(...args);
      assert.equal(code, 1);
      assert.match(stderr, /Cannot reach the daemon: /);
    }
  });

  it("list reads ssh.yaml and says unavailable [agent 36.13]", async () => {
    const none = await agent("list");
    assert.deepEqual([none.code, none.stdout], [0, "No remotes.\n"]);
    const path = join(folder.path, ".config/daemon/ssh.yaml");
    const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${"A".repeat(43)}`;
    await writeFile(
      path,
      `remotes:\n  - { host: build, port: 2222, host_key: ${key} }\n  - { host: db, enabled: false }\n`,
      { mode: 0o600 },
    );
    const { stdout, stderr, code } = await agent("list");
    assert.equal(code, 0);
    assert.match(stderr, /Cannot reach the daemon: /);
    assert.match(stdout, /^build \(port 2222\) +unavailable /m);
    assert.match(stdout, /^db +unavailable \(disabled\) /m);
    const json = JSON.parse((await agent("list", "--json")).stdout) as { remotes: Record<string, unknown>[] };
    assert.deepEqual(
      json.remotes.map(({ host, state, enabled, token_ttl, trust }) => [
        host,
        state,
        enabled,
        token_ttl,
        trust,
      ]),
      [
        ["build", "unavailable", true, "15m", "pin"],
        ["db", "unavailable", false, "15m", "none"],
      ],
    );
    assert.deepEqual(Object.keys(json.remotes[0] ?? {}), Object.keys(remoteView("")));
    await writeFile(path, "remotes:\n  - hots: S3cret\n", { mode: 0o600 });
    const broken = await agent("list");
    assert.equal(broken.code, 1);
    assert.match(broken.stderr, /ssh\.yaml:2:5: .*hots: unknown key; did you mean 'host'\?/);
    assert.ok(!broken.stderr.includes("S3cret"));
  });
});
