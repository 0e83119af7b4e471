import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { lstat, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { silentLogger, systemClock } from "@devplat/base";
import { run, startSshd, until, type Sshd } from "@devplat/testkit";
import { ForwardConnection } from "./connection.ts";
import { Forwards } from "./forwards.ts";
import { entryFor, loginTo, TestStation } from "./forwards.test-kit.ts";
import { systemView, NetworkWatch } from "./network-watch.ts";

/** A hang ends by itself. */
const TIMEOUT_MS = 240_000;

describe("forwards over real servers", { timeout: TIMEOUT_MS }, () => {
  let station: TestStation;
  let sshd: Sshd;
  before(async () => {
    station = await TestStation.create();
    sshd = await startSshd({ settings: ["StreamLocalBindUnlink no"] });
  });
  after(async () => {
    await sshd.stop();
    await station.remove();
  });
  async function forwards(): Promise<Forwards> {
    const parts = await station.parts(loginTo(sshd));
    return new Forwards({
      open: (entry, former, signal) => ForwardConnection.open(parts, entry, former, signal),
      network: new NetworkWatch({ view: systemView, clock: systemClock }),
      clock: systemClock,
      logger: silentLogger,
      random: Math.random,
    });
  }
  const phases = (all: Forwards, phase: string): Promise<unknown> =>
    until(
      () => all.list().every(({ state }) => state.phase === phase),
      () => JSON.stringify(all.list().map(({ state }) => state)),
    );

  it("come back after the server was killed, and end with nothing left on either host", async () => {
    const all = await forwards();
    all.reconcile([entryFor(sshd), entryFor(sshd, { host: "localhost", remote_socket: "~/other.sock" })]);
    await phases(all, "connected");
    await sshd.pause();
    await until(
      () => all.list().every(({ state }) => state.failure?.class === "refused"),
      () => JSON.stringify(all.list().map(({ state }) => state)),
    );
    await sshd.resume();
    await phases(all, "connected");
    assert.deepEqual(
      all.list().map(({ state }) => [state.proven, state.reconnects]),
      [
        [true, 1],
        [true, 1],
      ],
    );
    await all.stop();
    assert.deepEqual([...station.peers.open], []);
    await assert.rejects(lstat(join(sshd.home, "other.sock")), { code: "ENOENT" });
  });

  it("with a new host key wait for a person, and come up with the new pin", async () => {
    const all = await forwards();
    all.reconcile([entryFor(sshd)]);
    await phases(all, "connected");
    await sshd.pause();
    await sshd.resume(true);
    await phases(all, "host-key-error");
    all.reconcile([entryFor(sshd)]);
    await phases(all, "connected");
    assert.equal(all.list()[0]?.state.proven, true);
    await all.stop();
  });

  it("end every ssh that a killed daemon has left", async () => {
    // The daemon that is killed: it has two connections, the second one frozen.
    const script = join(station.path, "daemon.ts");
    const kit = new URL("forwards.test-kit.ts", import.meta.url).pathname;
    const entries = [entryFor(sshd), entryFor(sshd, { host: "localhost", remote_socket: "~/other.sock" })];
    const login = loginTo(sshd);
    await writeFile(
      script,
      `import { TestStation } from ${JSON.stringify(kit)};
       import { ForwardConnection } from ${JSON.stringify(kit.replace("forwards.test-kit", "connection"))};
       const station = await TestStation.at(${JSON.stringify(station.path)});
       const parts = await station.parts(${JSON.stringify(login)});
       const pids = [];
       for (const entry of ${JSON.stringify(entries)}) {
         pids.push((await ForwardConnection.open(parts, entry, undefined, new AbortController().signal)).pid);
       }
       console.log(JSON.stringify(pids));
       setInterval(() => {}, 1000);`,
    );
    const daemon = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    daemon.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const pids = await until(() => output.includes("]") && (JSON.parse(output) as number[]));
    // A stopped process takes SIGTERM only when it goes on.
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    daemon.kill("SIGKILL");
    await until(() => daemon.signalCode !== null);
    const [frozen = 0, other = 0] = pids;
    process.kill(other, "SIGCONT");
    const isGone = async (pid: number): Promise<boolean> => {
      const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ") Z");
      return /\) [ZX]/.test(state);
    };
    // On Linux it ends with the daemon.
    await until(() => isGone(other));
    assert.equal(await isGone(frozen), false);
    await station.folder.endLeftovers();
    await until(() => isGone(frozen));
    assert.deepEqual(await readdir(station.runtime), []);
    const all = await forwards();
    all.reconcile([entryFor(sshd)]);
    await phases(all, "connected");
    await all.stop();
  });

  it("leave no private key and no nonce in the arguments or variables of any process", async (context) => {
    const all = await forwards();
    all.reconcile([entryFor(sshd)]);
    // A failure must not leave connections, which would keep the run of all tests.
    context.after(() => all.stop());
    await phases(all, "connected");
    const { stdout } = await run("ps", ["axww", "-o", "pid,ppid,args"]);
    const ours = new Set([process.pid]);
    const lines = stdout.split("\n").slice(1);
    // Other programs of this machine may have such words.
    const own = lines.filter((line) => {
      const [pid = 0, parent = 0] = line.trim().split(/\s+/, 2).map(Number);
      return ours.has(parent) ? ours.add(pid) : line.includes(station.runtime);
    });
    assert.ok(own.some((line) => line.includes(station.runtime)));
    assert.doesNotMatch(own.join("\n"), /nonce|PRIVATE KEY/);
  });
});
