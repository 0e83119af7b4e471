import assert from "node:assert/strict";
import { once } from "node:events";
import { access, readFile, writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  AGENT_LAUNCHER,
  run,
  spawnGroup,
  startSshd,
  startVault,
  until,
  type Finished,
  type Sshd,
  type Vault,
} from "@devplat/testkit";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { writePolicies } from "./agent-auth-stand.ts";
import { AGENT_SOCKET, REMOTES, SshStand } from "./agent-ssh-stand.ts";
import { Home } from "./agent-stand.ts";

/** A hang ends by itself; a loaded machine needs a tenth of it. */
const TIMEOUT_MS = 1_440_000;
/** A connection to a silent server ends by itself after 25 s. In milliseconds. */
const DIAL_LIMIT_MS = 20_000;
const QUESTION = /\(yes\/no\)/;
const SOCKET = ["--socket", "~/.ssh/daemon.test.sock"];

/** Arguments that add the server of a stand. */
function target({ port }: Sshd): string[] {
  return ["127.0.0.1", "--port", String(port), ...SOCKET];
}

async function fingerprintOf({ hostKey }: Sshd, folder: string): Promise<string> {
  const file = join(folder, "shown-key.pub");
  await writeFile(file, `${hostKey}\n`);
  const { stdout } = await run("ssh-keygen", ["-l", "-f", file], {});
  return stdout.split(" ")[1] ?? assert.fail(stdout);
}

function assertCode(code: number, finished: Finished, agentLog = ""): Finished {
  assert.equal(finished.code, code, `${finished.stdout}\n${finished.stderr}\n${agentLog}`);
  return finished;
}

/** No character of a server that a terminal would act on. */
function assertSafe({ stdout, stderr }: Finished): void {
  assert.doesNotMatch(stdout + stderr, /(?!\n)[\p{Cc}\p{Cf}]/u);
}

async function hasFile(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

function vaultSection({ address }: Vault): string {
  return `store: { driver: vault, address: "${address}", auth_method: token }\napi: { enabled: true }\n`;
}

function tokenIn(response: string): string {
  return /"token":"([^"]+)"/.exec(response)?.[1] ?? assert.fail(response);
}

/** Status of a look-up of a token by itself. */
async function statusOf({ address }: Vault, token: string): Promise<number> {
  const url = `${address}/v1/auth/token/lookup-self`;
  return (await fetch(url, { headers: { "X-Vault-Token": token } })).status;
}

/** Passes connections on. @param portOf for each connection, counted from 1; undefined: nothing is passed on */
async function startRelay(
  portOf: (count: number) => number | undefined,
): Promise<{ readonly port: number; connections(): number; stop(): Promise<void> }> {
  let count = 0;
  const open = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    open.add(socket);
    return socket.on("error", () => undefined).on("close", () => open.delete(socket));
  };
  const server = createServer((near) => {
    const port = portOf(++count);
    keep(near);
    if (port === undefined) return;
    const far = keep(connect(port, "127.0.0.1"));
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => count,
    stop: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

describe("agent ssh with a real daemon and SSH server", { timeout: TIMEOUT_MS }, () => {
  it("from nothing to a browser that a shell on the host opens here [agent 5.10]", async () => {
    await using stand = await SshStand.start();
    const opened = join(stand.home.path, "opened");
    await stand.home.write("bin/xdg-open", `#!/bin/sh\necho "$1" >> ${opened}\n`, 0o700);
    await stand.startAgent();
    const fingerprint = await fingerprintOf(stand.sshd, stand.home.path);

    const added = await stand.sshAtTerminal(["add", ...target(stand.sshd)], [[QUESTION, "yes"]]);
    assert.equal(added.code, 0, added.shown);
    assert.ok(added.shown.includes(`ssh-ed25519 ${fingerprint}`), added.shown);
    assert.match(added.shown, /Your known_hosts does not have this key/);
    await stand.state("connected");
    const listed = assertCode(0, await stand.ssh("list")).stdout;
    assert.match(
      listed,
      /^127\.0\.0\.1 \(port \d+\) +connected +\S+ +\/\S+\/\.ssh\/daemon\.test\.sock +none$/m,
    );

    // The other account has only its own home, and the remote socket.
    const there = new Home(join(stand.home.path, "there"));
    await there.configure(`store: { driver: embedded, token_socket: ["${stand.remoteSocket}"] }\n`);
    assertCode(0, await there.agent(["browse", "https://example.com/device"]));
    await until(() => hasFile(opened));
    assert.equal(await readFile(opened, "utf8"), "https://example.com/device\n");

    const off = assertCode(0, await stand.ssh("edit", "127.0.0.1", "--disable", "--offers", "notify"));
    assert.match(off.stdout, /^enabled +no$/m);
    assert.match(off.stdout, /^offers +notify$/m);
    assert.match(off.stdout, /^port +\d{2,}$/m);
    await stand.state("disabled");
    assertCode(0, await stand.ssh("remove", "127.0.0.1"));
    assert.match(
      assertCode(1, await stand.ssh("remove", "127.0.0.1")).stderr,
      /there is no remote '127\.0\.0\.1'/,
    );
  });

  it("works over the web port, and before a sign-in to the store [agent 36.9]", async () => {
    const sections = `store: { driver: vault, address: "http://127.0.0.1:1", auth_method: token }
web: { enabled: true, listen: "127.0.0.1:0" }
`;
    await using stand = await SshStand.start({}, sections);
    await stand.startAgent();
    const added = assertCode(
      0,
      await stand.ssh("add", ...target(stand.sshd), "--accept-host-key", "--json"),
      stand.agent?.log(),
    );
    const remote = JSON.parse(added.stdout) as RemoteView;
    assert.equal(remote.host_key?.key, stand.sshd.hostKey);
    const changed = assertCode(0, await stand.ssh("edit", "127.0.0.1", "--ask", "first", "--json"));
    assert.equal((JSON.parse(changed.stdout) as RemoteView).ask, "first");
    assertCode(0, await stand.ssh("remove", "127.0.0.1"));
  });

  it("shows whether known_hosts has the key, and refuses a key that changes then [agent 36.3 36.10]", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    const { port, hostKey } = stand.sshd;
    await stand.home.write(".ssh/known_hosts", `[127.0.0.1]:${port} ${hostKey}\n`);
    const asked = assertCode(1, await stand.ssh("add", ...target(stand.sshd)));
    assert.match(asked.stderr, /Your known_hosts has exactly this key/);
    assert.match(asked.stderr, /--accept-host-key/);

    const other = async (): Promise<string> => {
      await stand.sshd.pause();
      await stand.sshd.resume(true);
      return "yes";
    };
    const changed = await stand.sshAtTerminal(["add", ...target(stand.sshd)], [[QUESTION, other]]);
    assert.equal(changed.code, 1, changed.shown);
    assert.match(changed.shown, /shows another key than the one that was confirmed/);
    assert.equal(await hasFile(stand.file), false);
    const after = assertCode(1, await stand.ssh("add", ...target(stand.sshd)));
    assert.match(after.stderr, /Your known_hosts does not have this key/);
  });

  it("a server with another key after the confirmation gets no login [agent 36.2]", async () => {
    await using stand = await SshStand.start();
    const other = await startSshd();
    // The key is asked for twice, and confirmed between; the third connection logs in.
    const way = await startRelay((count) => (count <= 2 ? stand.sshd.port : other.port));
    try {
      await stand.startAgent();
      const args = ["127.0.0.1", "--port", String(way.port), ...SOCKET, "--accept-host-key"];
      const refused = assertCode(1, await stand.ssh("add", ...args));
      assert.match(refused.stderr, /Cannot connect to 127\.0\.0\.1 \(host-key\): /);
      assert.equal(way.connections(), 3);
      assert.doesNotMatch(other.output(), /Accepted publickey/);
      assert.equal(await hasFile(stand.file), false);
    } finally {
      await way.stop();
      await other.stop();
    }
  });

  it("an add that is given up ends its connection and saves nothing", async () => {
    await using stand = await SshStand.start();
    // It accepts connections, and says nothing.
    const silent = await startRelay(() => undefined);
    try {
      await stand.startAgent();
      const args = ["ssh", "add", "127.0.0.1", "--port", String(silent.port), ...SOCKET];
      const child = spawnGroup(AGENT_LAUNCHER, args, { env: stand.home.env });
      const ended = once(child, "close");
      await until(async () => silent.connections() > 0 && (await stand.connections()).length > 0);
      child.kill("SIGINT");
      await ended;
      const since = performance.now();
      await until(async () => (await stand.connections()).length === 0);
      assert.ok(performance.now() - since < DIAL_LIMIT_MS, "it ended by its own limit");
      assert.deepEqual((await stand.list()).remotes, []);
      assert.equal(await hasFile(stand.file), false);
    } finally {
      await silent.stop();
    }
  });

  it("an account that can do nothing but SFTP is enough", async () => {
    await using stand = await SshStand.start({ settings: ["ForceCommand internal-sftp", "PermitTTY no"] });
    await stand.startAgent();
    const args = ["127.0.0.1", "--port", String(stand.sshd.port), "--socket", stand.remoteSocket];
    assertCode(0, await stand.ssh("add", ...args, "--accept-host-key"), stand.agent?.log());
    assert.equal((await stand.state("connected")).proven, true);
    assert.match(await stand.remote("/healthz"), /200$/);
  });

  it("asks for the key of a jump host too, and pins both [agent 36.3]", async () => {
    await using stand = await SshStand.start();
    const jump = await startSshd();
    try {
      await stand.sshConfig(`IdentityFile ${stand.sshd.userKey}\nIdentityFile ${jump.userKey}\n`);
      await stand.startAgent();
      const args = [...target(stand.sshd), "--proxy-jump", `127.0.0.1:${jump.port}`];
      const asked = assertCode(1, await stand.ssh("add", ...args));
      assert.ok(asked.stderr.includes(await fingerprintOf(jump, stand.home.path)), asked.stderr);
      const added = assertCode(0, await stand.ssh("add", ...args, "--accept-host-key"), stand.agent?.log());
      for (const server of [jump, stand.sshd])
        assert.ok(added.stderr.includes(await fingerprintOf(server, stand.home.path)), added.stderr);
      await stand.state("connected");
      const file = await readFile(stand.file, "utf8");
      assert.ok(file.includes(jump.hostKey) && file.includes(stand.sshd.hostKey), file);
    } finally {
      await jump.stop();
    }
  });

  it("of two concurrent adds of one host one wins [agent 36.4]", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    const add = (): Promise<Finished> => stand.ssh("add", ...target(stand.sshd), "--accept-host-key");
    const both = await Promise.all([add(), add()]);
    assert.deepEqual(both.map(({ code }) => String(code)).toSorted(), ["0", "1"]);
    assert.match(both.find(({ code }) => code === 1)?.stderr ?? "", /'127\.0\.0\.1' is a remote already/);
    assert.equal((await stand.list()).remotes.length, 1);
  });

  it("--force saves without a connection, and --repin pins later [agent 36.11 9.7]", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    assertCode(0, await stand.ssh("add", ...target(stand.sshd), "--force", "--ask", "always"));
    await stand.state("host-key-error");
    const listed = assertCode(0, await stand.ssh("list")).stdout;
    assert.match(listed, /^127\.0\.0\.1: host-key: /m);
    assert.match(listed, /agent ssh add 127\.0\.0\.1 --repin/);
    const checked = async (): Promise<number> => (await stand.home.agent(["status", "--check"])).code;
    assert.equal(await checked(), 1);
    assertCode(0, await stand.ssh("edit", "127.0.0.1", "--disable"));
    assert.equal(await checked(), 0);
    assertCode(0, await stand.ssh("edit", "127.0.0.1", "--enable"));
    assertCode(1, await stand.ssh("add", "127.0.0.1", "--repin"));
    assertCode(0, await stand.ssh("add", "127.0.0.1", "--repin", "--accept-host-key"), stand.agent?.log());
    const remote = await stand.state("connected");
    assert.equal(remote.ask, "always");
    assert.equal(await checked(), 0);
    // The server gets another key: the daemon does not connect before a person has confirmed it.
    const before = await fingerprintOf(stand.sshd, stand.home.path);
    await stand.sshd.pause();
    await stand.sshd.resume(true);
    await stand.state("host-key-error");
    const asked = assertCode(1, await stand.ssh("add", "127.0.0.1", "--repin"));
    assert.ok(asked.stderr.includes(`Another key is pinned: ${before}`), asked.stderr);
    assertCode(0, await stand.ssh("add", "127.0.0.1", "--repin", "--accept-host-key"));
    await stand.state("connected");
  });

  it("a failed connection saves nothing, and says why without the server's escapes [agent 36.2 36.15]", async () => {
    const banner =
      "\u001b[2J\u001b]0;title\u0007\r\nHost key verification failed.\nPermission denied (fake).\n";
    await using stand = await SshStand.start();
    const hostile = await startSshd({ settings: [`Banner ${await stand.home.write("banner", banner)}`] });
    try {
      await stand.startAgent();
      // The key of this account opens the other server only.
      const refused = assertCode(1, await stand.ssh("add", ...target(hostile), "--accept-host-key"));
      assertSafe(refused);
      assert.match(refused.stderr, /Cannot connect to 127\.0\.0\.1 \(authentication\): /);
      await hostile.pause();
      const gone = assertCode(1, await stand.ssh("add", ...target(hostile), "--accept-host-key"));
      assert.match(gone.stderr, /Cannot connect to 127\.0\.0\.1 \(refused\): /);
      assert.doesNotMatch(gone.stderr, /tried again by itself/);
      assert.equal(await hasFile(stand.file), false);
    } finally {
      await hostile.stop();
    }
  });

  it("a name that looks like an option runs nothing and is refused", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    const touched = join(stand.home.path, "touched");
    const command = `-oProxyCommand=touch\${IFS}${touched}`;
    for (const args of [
      ["add", "--accept-host-key", "--", command],
      ["add", "--accept-host-key", "127.0.0.1", "--proxy-jump", command],
      ["add", "--accept-host-key", "127.0.0.1", "--user", command],
      ["remove", "--", command],
    ]) {
      assertSafe(assertCode(1, await stand.ssh(...args)));
    }
    for (const body of [
      { host: command },
      { host: "127.0.0.1", proxy_jump: command },
      { host: "a", user: command },
    ])
      assert.equal((await stand.call("POST", "", body)).status, 400);
    assert.equal(await hasFile(touched), false);
  });

  it("a file that people broke is not written, and the line is named [agent 36.2]", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    assertCode(0, await stand.ssh("add", ...target(stand.sshd), "--accept-host-key"));
    await stand.state("connected");
    const broken = `${await readFile(stand.file, "utf8")}    prot: 22\n`;
    await writeFile(stand.file, broken);
    const line = broken.trimEnd().split("\n").length;
    const refused = assertCode(1, await stand.ssh("edit", "127.0.0.1", "--disable"));
    assert.match(
      refused.stderr,
      new RegExp(`ssh\\.yaml:${line}:\\d+: .*prot: unknown key; did you mean 'port'`),
    );
    assert.equal(await readFile(stand.file, "utf8"), broken);
    await until(async () => (await stand.ssh("list")).stderr.includes("ssh.yaml is not used: "));
    assert.equal((await stand.list()).remotes[0]?.state, "connected");
  });

  it("the socket refuses a wrong token, a foreign page and a long body [agent 36.7 36.8]", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    const curl = async (...more: string[]): Promise<string> => {
      const socket = join(stand.home.path, AGENT_SOCKET);
      const args = ["-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", socket];
      const json = ["-H", "Content-Type: application/json"];
      return (await run("curl", [...args, ...json, ...more, `http://localhost${REMOTES}`], {})).stdout;
    };
    const body = ["--data", '{"host":"db","force":true}'];
    assert.equal(await curl(...body), "403");
    assert.equal(await curl(...body, "-H", "X-CSRF-Token: guess"), "403");
    assert.equal(await curl(...body, "-H", "Origin: http://evil.example"), "403");
    assert.equal(await curl("-H", "Origin: http://evil.example"), "403");
    assert.equal(await curl("-H", "Host: evil.example"), "403");
    const long = await stand.home.write(
      "long",
      JSON.stringify({ host: "db", policies: ["p".repeat(70_000)] }),
    );
    assert.equal(await curl("--data", `@${long}`), "413");
    assert.equal(await hasFile(stand.file), false);
  });

  it("add says what the store adds, list shows lent tokens, revoke ends them [agent 36.1]", async () => {
    const vault = await startVault();
    try {
      await writePolicies(vault);
      await using stand = await SshStand.start({}, vaultSection(vault));
      const own = await vault.createUserToken("ada", ["user"]);
      const found = (await vault.request("POST", "auth/token/lookup", { token: own })).body["data"];
      const entity = `identity/entity/id/${(found as { entity_id: string }).entity_id}`;
      await vault.request("POST", entity, { policies: ["of-entity"] });
      await stand.home.write(".daemon-token", own);
      await stand.startAgent();
      const add = ["add", ...target(stand.sshd), "--accept-host-key", "--policies", "user"];
      const added = assertCode(0, await stand.ssh(...add), stand.agent?.log());
      assert.match(added.stdout, /^the store adds +of-entity$/m);
      const status = await stand.home.ok("status");
      assert.match(status, /^127\.0\.0\.1: the store adds to its tokens: of-entity$/m);
      await stand.state("connected");
      const lent = tokenIn(await stand.remote("/api/v1/token"));
      assert.notEqual(lent, own);
      assert.equal(await statusOf(vault, lent), 200);
      const table = assertCode(0, await stand.ssh("list")).stdout;
      assert.match(table, /^127\.0\.0\.1 \(port \d+\) +connected .* 1 token$/m);
      const { stdout } = assertCode(0, await stand.ssh("list", "--json"));
      assert.match(stdout, /"handouts": 1/);
      for (const text of [table, stdout, stand.agent?.log() ?? ""])
        assert.ok(!text.includes(lent) && !text.includes(own), "the text of a token");

      assertCode(0, await stand.ssh("revoke", "127.0.0.1"));
      assert.equal(await statusOf(vault, lent), 403);
      assert.equal(await statusOf(vault, own), 200);
      assert.match(assertCode(0, await stand.ssh("list")).stdout, / none$/m);
    } finally {
      await vault.stop();
    }
  });

  it("list says why no token is lent [agent 36.1]", async () => {
    const vault = await startVault();
    try {
      await writePolicies(vault);
      await using stand = await SshStand.start({}, vaultSection(vault));
      await stand.home.write(".daemon-token", await vault.createUserToken("ada", ["reader"]));
      await stand.startAgent();
      assertCode(0, await stand.ssh("add", ...target(stand.sshd), "--accept-host-key"), stand.agent?.log());
      await stand.state("connected");
      assert.match(await stand.remote("/api/v1/token"), /"token_not_lendable".*403$/);
      assert.match(assertCode(0, await stand.ssh("list")).stdout, /^127\.0\.0\.1: no token is lent: \S/m);
    } finally {
      await vault.stop();
    }
  });
});
