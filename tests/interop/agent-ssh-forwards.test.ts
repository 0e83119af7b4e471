import assert from "node:assert/strict";
import { once } from "node:events";
import { lstat, mkdir, readFile, readdir, rename, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, it } from "node:test";
import { AGENT_SOURCES_LAUNCHER, until } from "@devplat/testkit";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { REMOTES, SshStand } from "./agent-ssh-stand.ts";

/** ssh notices a server that does not answer after 12 s; the rest is for a busy machine. In milliseconds. */
const FROZEN_LIMIT_MS = 60_000;

describe("managed SSH forwards of a running daemon", () => {
  it("a remote is added once its key is confirmed, serves its offers, and is removed", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    assert.deepEqual(await stand.list(), { remotes: [], file_problem: null });

    const added = await stand.add({ offers: ["browse"] });
    assert.equal(added.host_key?.key, stand.sshd.hostKey);
    const remote = await stand.state("connected");
    assert.equal(remote.proven, true);
    assert.equal(remote.trust, "pin");
    assert.equal(remote.remote_socket_expanded, stand.remoteSocket);
    assert.match(await stand.home.read(".config/daemon/ssh.yaml"), /host_key: ssh-ed25519 /);
    assert.equal((await lstat(stand.file)).mode & 0o777, 0o600);

    assert.match(await stand.remote("/healthz"), /"nonce":"[0-9a-f]{32}"}200$/);
    for (const path of ["/api/v1/token", "/api/v1/status", REMOTES, "/api/v1/secrets/", "/metrics"]) {
      assert.match(await stand.remote(path), /404$/, path);
    }
    assert.match(await stand.remote("/healthz", "-H", "Host: evil.test"), /403$/);

    const status = (await stand.get("/api/v1/status")) as { remotes: RemoteView[] };
    assert.equal(status.remotes[0]?.state, "connected");
    assert.match(await stand.home.ok("status"), /^127\.0\.0\.1 .* connected /m);
    const doctor = (await stand.home.agent(["doctor"])).stdout;
    assert.match(doctor, /^ok +forward to 127\.0\.0\.1: connected$/m);
    assert.match(doctor, /^ok +ssh: OpenSSH \d/m);
    const metrics = await stand.metrics();
    assert.match(metrics, /^agent_ssh_forward_up\{host="127\.0\.0\.1"\} 1$/m);
    assert.match(metrics, /^agent_ssh_tokens_lent\{host="127\.0\.0\.1"\} 0$/m);

    assert.equal((await stand.call("POST", "", { host: "127.0.0.1" })).status, 409);
    assert.equal((await stand.call("PATCH", "/127.0.0.1", { enabled: false })).status, 200);
    await stand.state("disabled");
    await until(async () => (await stand.connections()).length === 0);
    assert.equal((await stand.call("PATCH", "/127.0.0.1", { enabled: true })).status, 200);
    await stand.state("connected");
    assert.equal((await stand.call("DELETE", "/127.0.0.1")).status, 204);
    await until(async () => (await stand.connections()).length === 0);
    assert.equal((await stand.call("DELETE", "/127.0.0.1")).status, 404);
    assert.deepEqual((await stand.list()).remotes, []);
  });

  it("comes back after the server was killed, and counts it", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    await stand.sshd.pause();
    // The end of the connection has a class of its own; the attempts after it are refused.
    await until(async () => (await stand.list()).remotes[0]?.error?.class === "refused");
    assert.match((await stand.list()).remotes[0]?.error?.advice ?? "", /^Check the port/);
    await stand.sshd.resume();
    assert.equal((await stand.state("connected")).reconnects, 1);
    assert.match(await stand.remote("/healthz"), /200$/);
  });

  it("notices a server that is frozen, and comes back when it goes on", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    const began = performance.now();
    await stand.sshd.signal("SIGSTOP");
    try {
      await until(
        async () => (await stand.list()).remotes[0]?.state !== "connected",
        () => stand.agent?.log() ?? "",
      );
      assert.ok(performance.now() - began < FROZEN_LIMIT_MS);
    } finally {
      await stand.sshd.signal("SIGCONT");
    }
    assert.ok((await stand.state("connected")).reconnects >= 1);
    assert.match(await stand.remote("/healthz"), /200$/);
  });

  it("does not accept a changed host key before a person has confirmed it", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    await stand.sshd.pause();
    await stand.state("offline");
    await stand.sshd.resume(true);
    const refused = await stand.state("host-key-error");
    assert.equal(refused.error?.class, "host-key");
    assert.match(refused.error?.advice ?? "", /--repin/);
    assert.match(await stand.remote("/healthz"), /000$/);

    const asked = await stand.call("POST", "/127.0.0.1/host-key", {});
    assert.equal(asked.status, 409);
    const { offered } = asked.body as { offered: { fingerprint: string; pinned: string } };
    assert.equal(offered.pinned, refused.host_key?.fingerprint);
    assert.equal((await stand.list()).remotes[0]?.host_key?.key, refused.host_key?.key);
    const wrong = { accept_fingerprint: offered.pinned };
    assert.equal((await stand.call("POST", "/127.0.0.1/host-key", wrong)).status, 409);

    const confirmed = { accept_fingerprint: offered.fingerprint };
    assert.equal((await stand.call("POST", "/127.0.0.1/host-key", confirmed)).status, 200);
    assert.equal((await stand.state("connected")).host_key?.key, stand.sshd.hostKey);
  });

  it("ssh.yaml is followed when a person edits it, also before it was there", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    const entry = (more: string): string =>
      `# mine\nremotes:\n  - host: 127.0.0.1\n    port: ${stand.sshd.port}\n    host_key: ${stand.sshd.hostKey}\n    remote_socket: ${stand.remoteSocket}\n${more}`;
    const name = ".config/daemon/ssh.yaml";
    await stand.home.write(name, entry(""));
    await until(
      async () => (await stand.list()).remotes[0]?.state === "connected",
      () => stand.agent?.log() ?? "",
    );
    const [pid] = await stand.connections();

    await stand.home.write(name, entry("    offers: [many]\n"));
    await until(async () => (await stand.list()).file_problem !== null);
    assert.match((await stand.list()).file_problem ?? "", /ssh\.yaml:7:\d+: remotes\[0\]\.offers/);
    assert.match(await stand.remote("/healthz"), /200$/);
    assert.equal((await stand.call("PATCH", "/127.0.0.1", { enabled: false })).status, 409);
    const { config } = (await stand.get("/api/v1/status")) as { config: { problems: string[] } };
    assert.match(config.problems.join("\n"), /remotes\[0\]\.offers/);

    // A link is followed, to a folder of its own.
    await mkdir(join(stand.home.path, "dotfiles"));
    await rename(stand.file, join(stand.home.path, "dotfiles/ssh.yaml"));
    await symlink("../../dotfiles/ssh.yaml", stand.file);
    await stand.home.write("dotfiles/ssh.yaml", entry("    offers: [notify]\n"));
    await until(async () => (await stand.list()).remotes[0]?.offers.join() === "notify");
    await stand.state("connected");
    assert.deepEqual((await stand.list()).file_problem, null);
    assert.ok(!(await stand.connections()).includes(pid ?? 0));
    assert.match(await stand.remote("/api/v1/remote/clipboard", "-d", "text=t"), /404$/);

    assert.equal((await stand.call("PATCH", "/127.0.0.1", { offers: ["browse"] })).status, 200);
    assert.ok((await lstat(stand.file)).isSymbolicLink());
    assert.match(
      await stand.home.read("dotfiles/ssh.yaml"),
      /^# mine\nremotes:[^]*\n    offers: \[browse\]\n$/,
    );
    await stand.state("connected");

    // Another part of the configuration does not touch it.
    const [before] = await stand.connections();
    await stand.home.ok("reload");
    await until(() => (stand.agent?.log() ?? "").includes("configuration read"));
    assert.deepEqual(await stand.connections(), [before]);

    await stand.home.write(name, "remotes: []\n");
    await until(async () => (await stand.connections()).length === 0);
    assert.deepEqual((await stand.list()).remotes, []);
  });

  it("killed with SIGKILL leaves no ssh behind, and the next start keeps the pin", async () => {
    await using stand = await SshStand.start();
    const killed = await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    const text = await readFile(stand.file, "utf8");
    const before = await stand.connections();
    assert.equal(before.length > 0, true);
    process.kill(killed.pid ?? 0, "SIGKILL");
    await until(async () => (await stand.connections()).length === 0);

    await stand.startAgent();
    const remote = await stand.state("connected");
    assert.equal(remote.host_key?.key, stand.sshd.hostKey);
    assert.equal(await readFile(stand.file, "utf8"), text);
    assert.match(await stand.remote("/healthz"), /200$/);
    const sockets = await readdir(join(stand.home.path, "run/daemon/ssh"));
    assert.equal(sockets.filter((each) => each.endsWith(".ctl")).length, 1);
    assert.equal(sockets.filter((each) => each.endsWith(".peer")).length, 1);

    assert.equal(await stand.agent?.stop(), 0);
    assert.deepEqual(await stand.connections(), []);
    await assert.rejects(lstat(stand.remoteSocket), { code: "ENOENT" });
  });

  it("a master that a killed daemon has left is ended at the next start", async () => {
    await using stand = await SshStand.start();
    const killed = await stand.startAgent();
    await stand.add();
    await stand.state("connected");
    const before = await stand.connections();
    // Stopped processes take the signal of their parent's death only later.
    for (const pid of before) process.kill(pid, "SIGSTOP");
    process.kill(killed.pid ?? 0, "SIGKILL");
    await stand.startAgent();
    await stand.state("connected");
    const now = await stand.connections();
    assert.deepEqual(
      before.filter((pid) => now.includes(pid)),
      [],
    );
  });

  it("a remote socket that belongs to another program is not taken", async () => {
    await using stand = await SshStand.start();
    await stand.startAgent();
    await mkdir(join(stand.sshd.home, ".ssh"), { mode: 0o700 });
    const other = createServer((connection) =>
      connection.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
    );
    other.listen(stand.remoteSocket);
    await once(other, "listening");
    try {
      const body = {
        host: "127.0.0.1",
        port: stand.sshd.port,
        remote_socket: stand.remoteSocket,
        host_key: stand.sshd.hostKey,
      };
      const refused = await stand.call("POST", "", body);
      assert.equal(refused.status, 422, JSON.stringify(refused.body));
      assert.equal((refused.body as { class: string }).class, "socket-bind");
      assert.deepEqual((await stand.list()).remotes, []);
      assert.match(await stand.remote("/healthz"), /^hi200$/);
    } finally {
      other.close();
    }
  });

  it("a daemon without ssh.yaml loads no code of connections", async () => {
    await using stand = await SshStand.start();
    const list = join(stand.home.path, "loaded");
    Object.assign(stand.home.env, {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, "loaded-modules.ts")}`,
      LOADED_MODULES: list,
    });
    const running = await stand.startAgent({ launcher: AGENT_SOURCES_LAUNCHER });
    assert.deepEqual((await stand.list()).remotes, []);
    assert.equal(await running.stop(), 0);
    const loaded = await readFile(list, "utf8");
    assert.match(loaded, /forwards-on-demand\.ts$/m);
    const connections = loaded
      .split("\n")
      .filter((url) => /\/forwards\/.*(?:sftp|master|connection|remotes\.ts)/.test(url));
    assert.deepEqual(connections, []);
  });
});
