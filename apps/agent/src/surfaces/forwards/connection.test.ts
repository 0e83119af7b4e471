import assert from "node:assert/strict";
import { once } from "node:events";
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createConnection, createServer, type Server } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { messageOf } from "@devplat/base";
import { run, startSshd, until, type Sshd, type SshdOptions } from "@devplat/testkit";
import { ForwardConnection } from "./connection.ts";
import { ForwardError } from "./errors/forward-error.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import { entryFor, loginTo, TestStation } from "./forwards.test-kit.ts";
import { ConnectionError, type FailureClass } from "./openssh/failure.ts";
import { proofOf } from "./proof.ts";

/** A hang ends by itself. */
const TIMEOUT_MS = 240_000;
const NEVER = new AbortController().signal;

/** A Unix socket that somebody else listens on. */
async function listenAt(path: string): Promise<Server> {
  const server = createServer((connection) => connection.end("HTTP/1.0 200 OK\r\n\r\n{}"));
  server.listen(path);
  await once(server, "listening");
  return server;
}

describe("a forward's connection, against a real sshd", { timeout: TIMEOUT_MS }, () => {
  let station: TestStation;
  let sshd: Sshd;
  let open: ForwardConnection[] = [];
  let servers: Sshd[] = [];
  before(async () => {
    station = await TestStation.create();
    sshd = await startSshd({ settings: ["StreamLocalBindUnlink no"] });
  });
  afterEach(async () => {
    await Promise.all(open.map((each) => each.close()));
    await Promise.all(servers.map((each) => each.stop()));
    [open, servers] = [[], []];
    await rm(join(sshd.home, ".ssh"), { recursive: true, force: true });
    assert.deepEqual([...station.peers.open], []);
  });
  after(async () => {
    await sshd.stop();
    await station.remove();
  });
  /** Another server, for the time of the test. */
  async function server(options: SshdOptions = {}): Promise<Sshd> {
    const started = await startSshd(options);
    servers.push(started);
    return started;
  }
  const socketOf = ({ home }: Sshd): string => join(home, ".ssh/daemon.test.sock");

  async function connect(
    entry: RemoteEntry,
    configuration = loginTo(sshd),
    former?: ForwardConnection,
  ): Promise<ForwardConnection> {
    const parts = await station.parts(configuration);
    const made = await ForwardConnection.open(parts, entry, former?.socket, NEVER);
    open.push(made);
    return made;
  }
  async function failureClass(action: Promise<unknown>): Promise<FailureClass | undefined> {
    const error = await action.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) return undefined;
    assert.ok(error instanceof ConnectionError, messageOf(error));
    return error.failure.class;
  }

  it("is up and proven: a socket in a new folder of the remote home leads here", async () => {
    const made = await connect(entryFor(sshd));
    assert.equal(made.proven, true);
    assert.equal((await stat(join(sshd.home, ".ssh"))).mode & 0o777, 0o700);
    const found = await lstat(socketOf(sshd));
    assert.deepEqual([found.isSocket(), found.mode & 0o777], [true, 0o600]);
    assert.equal(made.socket.path, socketOf(sshd));
    assert.equal(await proofOf(socketOf(sshd), "other"), "foreign");
    assert.equal(await made.isOurs(), true);
    await made.close();
    await assert.rejects(lstat(socketOf(sshd)), { code: "ENOENT" });
    assert.deepEqual(await readdir(station.runtime), []);
  });

  it("leaves no core file, has its own session, and is given no secret", async () => {
    process.env["AGENT_TOKEN"] = "hunter2";
    process.env["SSH_ASKPASS"] = "/bin/false";
    const { pid } = await connect(entryFor(sshd));
    delete process.env["AGENT_TOKEN"];
    delete process.env["SSH_ASKPASS"];
    const limits = await readFile(`/proc/${pid}/limits`, "utf8");
    assert.match(limits, /^Max core file size +0 +0 /m);
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    assert.match(environment, /SSH_ASKPASS_REQUIRE=never/);
    assert.doesNotMatch(environment, /hunter2|AGENT_TOKEN|SSH_ASKPASS=/);
    const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
    // Session and process group are its own (proc(5), fields 5 and 6).
    assert.deepEqual([fields[2], fields[3]], [String(pid), String(pid)]);
  });

  it("refuses another key than the pinned one, and a host without a pin", async () => {
    const { hostKey } = await startSshdForKey();
    assert.equal(await failureClass(connect(entryFor(sshd, { host_key: hostKey }))), "host-key");
    assert.equal(await failureClass(connect(entryFor(sshd, { host_key: undefined }))), "host-key");
  });

  it("with the check switched off connects to any host", async () => {
    station.trust.ignoreHostKeys = true;
    const made = await connect(entryFor(sshd, { host_key: undefined })).finally(
      () => (station.trust.ignoreHostKeys = false),
    );
    assert.match(station.log.join(""), /"level":"warn".*"host":"127.0.0.1".*host keys are not checked/);
    assert.equal(made.proven, true);
  });

  it("tells a refused login, a closed port, an unknown name and a silent host apart", async () => {
    assert.equal(
      await failureClass(connect(entryFor(sshd), "IdentityFile /nonexistent\nIdentityAgent none\n")),
      "authentication",
    );
    assert.equal(await failureClass(connect(entryFor(sshd, { port: 1 }))), "refused");
    assert.equal(await failureClass(connect(entryFor(sshd, { host: "no-such-host.invalid" }))), "dns");
    const broken = createServer((connection) => connection.end("HTTP/1.0 400 Bad Request\r\n\r\n"));
    broken.listen(0, "127.0.0.1");
    await once(broken, "listening");
    const { port } = broken.address() as { port: number };
    assert.equal(await failureClass(connect(entryFor(sshd, { port }))), "handshake");
    broken.close();
  });

  it("a broken configuration of the user is named by ssh's own words", async () => {
    const refused = (error: unknown): boolean =>
      error instanceof ForwardError &&
      error.code === "configuration_refused" &&
      /Bad configuration option: foo/.test(error.message);
    await assert.rejects(connect(entryFor(sshd), "Foo bar\n"), refused);
  });

  it("goes through jump hosts, each with its own pin", async () => {
    const [jump, other] = [await server(), await server()];
    const chain = `127.0.0.1:${jump.port},127.0.0.1:${other.port}`;
    const pins = { [`127.0.0.1:${jump.port}`]: jump.hostKey, [`127.0.0.1:${other.port}`]: other.hostKey };
    const login = loginTo(sshd, jump, other);
    const made = await connect(entryFor(sshd, { proxy_jump: chain, hop_keys: pins }), login);
    assert.equal(made.proven, true);
    await made.close();
    // From the user's configuration as well, and there with aliases.
    const aliases = `Host far\n  HostName 127.0.0.1\n  ProxyJump near\nHost near\n  HostName 127.0.0.1\n  Port ${jump.port}\nHost *\n`;
    const far = await connect(entryFor(sshd, { host: "far", hop_keys: pins }), aliases + login);
    assert.equal(far.proven, true);
    const wrong = { ...pins, [`127.0.0.1:${other.port}`]: jump.hostKey };
    const refused = connect(entryFor(sshd, { proxy_jump: chain, hop_keys: wrong }), login);
    assert.equal(await failureClass(refused), "host-key");
    const locked = connect(entryFor(sshd, { proxy_jump: chain, hop_keys: pins }), loginTo(sshd, jump));
    assert.equal(await failureClass(locked), "authentication");
  });

  it("believes a certificate of a configured authority, only for its host patterns", async () => {
    const at = (name: string): string => join(station.path, name);
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("ca")]);
    await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("hostkey")]);
    const certify = (...options: string[]): Promise<unknown> =>
      run("ssh-keygen", ["-q", "-s", at("ca"), "-I", "host", ...options, at("hostkey.pub")]);
    const settings = [`HostKey ${at("hostkey")}`, `HostCertificate ${at("hostkey-cert.pub")}`];
    const ca = (await readFile(at("ca.pub"), "utf8")).trim();
    const trusted = [`@cert-authority 127.0.0.* ${ca}`];
    await certify("-h", "-n", "127.0.0.1");
    const certified = await server({ settings });
    const entry = entryFor(certified, { host_key: undefined });
    try {
      station.trust.authorities = trusted;
      const made = await connect(entry, loginTo(certified));
      assert.equal(made.proven, true);
      await made.close();
      station.trust.authorities = [`@cert-authority *.example.com ${ca}`];
      assert.equal(await failureClass(connect(entry, loginTo(certified))), "host-key");
      // Without an authority the plain key is pinned.
      station.trust.authorities = [];
      const plain = (await readFile(at("hostkey.pub"), "utf8")).split(" ").slice(0, 2).join(" ");
      assert.equal((await connect({ ...entry, host_key: plain }, loginTo(certified))).proven, true);
      for (const options of [
        ["-h", "-n", "other.example.com"],
        ["-h", "-n", "127.0.0.1", "-V", "20200101:20200102"],
        ["-n", "127.0.0.1"],
      ]) {
        await certify(...options);
        station.trust.authorities = trusted;
        const wrong = await server({ settings });
        const refused = connect(entryFor(wrong, { host_key: undefined }), loginTo(wrong));
        assert.equal(await failureClass(refused), "host-key", options.join(" "));
      }
    } finally {
      station.trust.authorities = [];
    }
  });

  it("an account without a shell works", async () => {
    const files = await server({ settings: ["ForceCommand internal-sftp"] });
    // The command takes the place of the subsystem's, so the home folder is the account's own.
    const made = await connect(
      entryFor(files, { remote_socket: join(files.home, "a.sock") }),
      loginTo(files),
    );
    assert.equal(made.proven, true);
  });

  it("without SFTP an absolute path is needed", async () => {
    const none = await server({ sftp: "/bin/false", settings: ["StreamLocalBindUnlink no"] });
    assert.equal(await failureClass(connect(entryFor(none), loginTo(none))), "socket-folder");
    const made = await connect(entryFor(none, { remote_socket: join(none.home, "a.sock") }), loginTo(none));
    assert.equal(made.proven, true);
    await made.close();
    const next = connect(entryFor(none, { remote_socket: join(none.home, "a.sock") }), loginTo(none), made);
    await assert.rejects(next, (error) => {
      assert.ok(error instanceof ConnectionError);
      assert.deepEqual([error.failure.class, error.failure.withoutSftp], ["socket-bind", true]);
      return true;
    });
    const missing = connect(entryFor(none, { remote_socket: join(none.home, "no/a.sock") }), loginTo(none));
    assert.equal(await failureClass(missing), "forwarding-denied");
  });

  it("paths with characters that ssh reads as more than a path arrive as they are", async () => {
    const name = "a b:c%h\\d'\"$x,é.sock";
    const made = await connect(entryFor(sshd, { remote_socket: `~/${name}` }));
    assert.equal(made.proven, true);
    assert.ok((await lstat(join(sshd.home, name))).isSocket());
  });

  it("a server that denies forwards is told from one that denies only local ones", async () => {
    const denies = await server({ settings: ["AllowStreamLocalForwarding no"] });
    assert.equal(await failureClass(connect(entryFor(denies), loginTo(denies))), "forwarding-denied");
    const oneWay = await server({
      settings: ["AllowStreamLocalForwarding remote", "StreamLocalBindUnlink no"],
    });
    const made = await connect(entryFor(oneWay), loginTo(oneWay));
    assert.deepEqual([made.proven, await made.isOurs()], [false, true]);
    assert.equal(await proofOf(socketOf(oneWay), "other"), "foreign");
    // Its own socket of before is known by its time; a strange one is left alone there.
    process.kill(made.pid ?? 0, "SIGKILL");
    await made.ended;
    assert.ok((await lstat(socketOf(oneWay))).isSocket());
    assert.equal(await failureClass(connect(entryFor(oneWay), loginTo(oneWay))), "socket-bind");
    assert.equal((await connect(entryFor(oneWay), loginTo(oneWay), made)).proven, false);
  });

  it("a stale socket of the account is replaced, anything else is left alone", async () => {
    await mkdir(join(sshd.home, ".ssh"), { mode: 0o700 });
    const path = socketOf(sshd);
    const stale = await listenAt(join(sshd.home, ".ssh/other"));
    await link(join(sshd.home, ".ssh/other"), path);
    stale.close();
    const made = await connect(entryFor(sshd));
    assert.equal(made.proven, true);
    await made.close();

    const live = await listenAt(path);
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-bind");
    live.close();
    await writeFile(path, "mine");
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-bind");
    assert.equal(await readFile(path, "utf8"), "mine");
    await rm(path);
    await symlink("elsewhere", path);
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-bind");
    assert.equal(await readlink(path), "elsewhere");
    await rm(path);
    const foreign = await listenAt(join(sshd.home, ".ssh/another"));
    await link(join(sshd.home, ".ssh/another"), path);
    foreign.close();
    await chown(path, 12_345, 12_345);
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-bind");
  });

  it("a folder that others can write to, or of another account, is refused", async () => {
    const folder = join(sshd.home, ".ssh");
    await mkdir(folder);
    await chmod(folder, 0o777);
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-folder");
    await chmod(folder, 0o755);
    await chown(folder, 12_345, 12_345);
    assert.equal(await failureClass(connect(entryFor(sshd))), "socket-folder");
    const missing = entryFor(sshd, { remote_socket: join(sshd.home, "no/such/a.sock") });
    assert.equal(await failureClass(connect(missing)), "socket-folder");
  });

  it("notices a socket that was taken away or replaced", async () => {
    const made = await connect(entryFor(sshd));
    await rm(socketOf(sshd));
    assert.equal(await made.isOurs(), false);
    const other = await listenAt(socketOf(sshd));
    assert.equal(await made.isOurs(), false);
    other.close();
  });

  it("a killed server ends the connection; a frozen one is noticed", async () => {
    const [killed, frozen] = [await server(), await server()];
    const [one, two] = [
      await connect(entryFor(killed), loginTo(killed)),
      await connect(entryFor(frozen), loginTo(frozen)),
    ];
    const since = performance.now();
    await frozen.signal("SIGSTOP");
    const connecting = failureClass(
      connect(entryFor(frozen, { remote_socket: "~/other.sock" }), loginTo(frozen)),
    );
    await killed.signal("SIGKILL");
    assert.equal((await one.ended).class, "unreachable");
    // The frozen one needs 12 to 18 s; three times that is for a loaded machine.
    assert.equal((await two.ended).class, "timeout");
    assert.ok(performance.now() - since < 54_000, `after ${performance.now() - since} ms`);
    assert.equal(await connecting, "timeout");
    assert.ok(performance.now() - since < 60_000, `after ${performance.now() - since} ms`);
    await frozen.signal("SIGCONT");
  });

  it("a remote host that opens hundreds of connections is cut off", async () => {
    const made = await connect(entryFor(sshd));
    const sockets = Array.from({ length: 400 }, () =>
      createConnection(socketOf(sshd)).on("error", () => undefined),
    );
    const failure = await made.ended;
    assert.deepEqual([failure.class, failure.waitLong], ["local", true]);
    for (const each of sockets) each.destroy();
  });

  it("an attempt that is given up leaves no process and no socket", async () => {
    const stop = new AbortController();
    await sshd.signal("SIGSTOP");
    const parts = await station.parts(loginTo(sshd));
    const opening = ForwardConnection.open(parts, entryFor(sshd), undefined, stop.signal);
    await until(
      async () => (await readdir(station.runtime)).some((name) => name.endsWith(".pid")),
      () => "no ssh was started",
    );
    stop.abort();
    await assert.rejects(opening, { name: "AbortError" });
    await sshd.signal("SIGCONT");
    assert.ok(!(await readdir(station.runtime)).some((name) => /\.(?:pid|ctl|peer|probe)$/.test(name)));
  });

  async function startSshdForKey(): Promise<Pick<Sshd, "hostKey">> {
    const other = await startSshd();
    await other.stop();
    return other;
  }
});
