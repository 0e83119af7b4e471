import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodePublicKeyLine } from "@devplat/ssh-protocol";
import { cpuSecondsOf, run as runProgram, until } from "@devplat/testkit";
import { requestOverSocket } from "../../apps/agent/src/peers/socket-request.ts";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { AGENT_SOCKET, SshStand } from "../../tests/interop/agent-ssh-stand.ts";
import { medianOf } from "../lib/agent-requests.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize, type Summary } from "../lib/statistics.ts";

/** Requests of one sample, one after another. */
const REQUESTS = 300;
/** Forwards that are idle together. */
const IDLE_FORWARDS = 50;
/** Seconds for which idle forwards are watched: IDLE_SECONDS. The aim is stated for ten minutes. */
const IDLE_SECONDS = Number(process.env["IDLE_SECONDS"] ?? 60);
/** Aims of the project for idle forwards: part of a core, and megabytes of each forward. */
const IDLE_CORE_PERCENT = 0.5;
const IDLE_MEGABYTES = 10;
const IDENTITIES_MS = 2;
/** Bytes that are signed, as many as in a login. */
const DATA_BYTES = 250;
/** For hangs, in milliseconds. */
const REQUEST_LIMIT_MS = 10_000;
const DAEMON_SOCKET = ".ssh/ours.sock";
const SECTIONS = `store: { driver: embedded, username: ada }
api: { enabled: true }
agent: { enabled: true, keys: [{ source: kv, name: bench, path_prefix: ssh/ }] }
`;

/** Managed forwards against `ssh -N -R` by hand, and the daemon's SSH agent against OpenSSH's. */
export async function run(rounds: number): Promise<Report> {
  await using stand = await Comparison.start();
  const up = await interleave({ ours: () => stand.managedUp(), reference: () => stand.byHandUp() }, rounds);
  const health = await interleave(
    { ours: () => stand.health(DAEMON_SOCKET), reference: () => stand.health("by-hand.sock") },
    rounds,
  );
  const key = stand.publicKey;
  const sign = { type: "sign", key, data: Buffer.alloc(DATA_BYTES, 7), flags: 0 } as const;
  const list = { type: "identities" } as const;
  const agents = await interleave(
    {
      sign: () => medianOf(stand.agentSocket, sign, REQUESTS),
      referenceSign: () => medianOf(stand.referenceSocket, sign, REQUESTS),
      list: () => medianOf(stand.agentSocket, list, REQUESTS),
    },
    rounds,
  );
  const idle = await stand.idle();
  const row = (what: string, unit: Row["unit"], values: readonly number[], more: Partial<Row>): Row => ({
    what,
    unit,
    ours: summarize([...values]),
    reference: bound(1),
    referenceName: "the bound",
    ...more,
  });
  const byHand = { referenceName: "ssh -N -R by hand" };
  return {
    name: "agent-ssh",
    title: "Managed forwards and the SSH agent of the daemon",
    method: `The daemon from its sources, sshd on loopback; ${rounds} rounds, both kinds in turn. Up: from the request to the first response over the remote socket; a managed one must be proven, too. Requests: the median of ${REQUESTS}, one after another, each on a connection of its own for health. Idle: ${IDLE_FORWARDS} forwards for ${IDLE_SECONDS} s, ssh included.`,
    rows: [
      row("forward up and proven", "ms", up.ours, {
        reference: summarize(up.reference),
        ...byHand,
        target: { atMost: 1.5 },
      }),
      row("GET /healthz over the forward, p50", "ms", health.ours, {
        reference: summarize(health.reference),
        ...byHand,
        target: { atMost: 1.2 },
      }),
      row(`${IDLE_FORWARDS} idle forwards, part of a core`, "%", [idle.percent], {
        reference: bound(IDLE_CORE_PERCENT),
        target: { atMost: 1 },
      }),
      row("an idle forward, proportional memory", "MB", [idle.megabytes], {
        reference: bound(IDLE_MEGABYTES),
        target: { atMost: 1 },
      }),
      row("Ed25519 signature with audit, p50", "µs", agents.sign, {
        reference: summarize(agents.referenceSign),
        referenceName: "ssh-agent",
        target: { atMost: 2 },
      }),
      row("identities, warm, p50", "µs", agents.list, {
        reference: bound(IDENTITIES_MS * 1000),
        target: { atMost: 1 },
      }),
    ],
  };
}

const bound = (value: number): Summary => ({ min: value, median: value, max: value, runs: 1 });

/** A daemon with one remote and one key, and the same by hand. */
class Comparison {
  readonly #stand: SshStand;
  readonly #byHand: ChildProcess[] = [];
  #sshByHand: ChildProcess | undefined;
  publicKey: Buffer = Buffer.alloc(0);

  private constructor(stand: SshStand) {
    this.#stand = stand;
  }

  static async start(): Promise<Comparison> {
    const comparison = new Comparison(await SshStand.start({ settings: ["MaxStartups 200"] }, SECTIONS));
    try {
      await comparison.#start();
      return comparison;
    } catch (error) {
      await comparison[Symbol.asyncDispose]();
      throw error;
    }
  }

  get agentSocket(): string {
    return this.#at("run/daemon/ssh-agent.sock");
  }

  get referenceSocket(): string {
    return this.#at("reference.sock");
  }

  /** Milliseconds until the daemon's forward is proven. It stays up. */
  async managedUp(): Promise<number> {
    await this.#enable(false);
    await until(async () => (await this.#remotes())[0]?.state === "disabled");
    const begin = performance.now();
    await this.#enable(true);
    for (;;) {
      const [remote] = await this.#remotes();
      if (remote?.proven === true) return performance.now() - begin;
      await sleep(2);
    }
  }

  /** Milliseconds until a forward by hand gives the first response. It stays up. */
  async byHandUp(): Promise<number> {
    await ended(this.#sshByHand);
    const socket = join(this.#stand.sshd.home, "by-hand.sock");
    await rm(socket, { force: true });
    const begin = performance.now();
    const args = ["-N", "-R", `${socket}:${this.#at(AGENT_SOCKET)}`, ...this.#stand.sshd.clientArgs];
    this.#sshByHand = this.#spawn("ssh", args);
    while ((await statusAt(socket)) !== 200) await sleep(2);
    return performance.now() - begin;
  }

  /** Median time of a request over a forward, in milliseconds. */
  async health(name: string): Promise<number> {
    const socket = join(this.#stand.sshd.home, name);
    const times: number[] = [];
    for (let count = 0; count < REQUESTS; count++) {
      const begin = performance.now();
      if ((await statusAt(socket)) !== 200) throw new Error(`no response at ${name}`);
      times.push(performance.now() - begin);
    }
    return summarize(times).median;
  }

  /** Processor and memory of many forwards to which nothing happens. */
  async idle(): Promise<{ readonly percent: number; readonly megabytes: number }> {
    const memory = await this.#memory();
    const entries = Array.from({ length: IDLE_FORWARDS }, (_, index) =>
      this.#entry(`host${index}`, `.ssh/idle-${index}.sock`, true),
    );
    const aliases = entries.map(({ host }) => `Host ${host}\n  HostName 127.0.0.1\n`).join("");
    await this.#stand.sshConfig(`IdentityFile ${this.#stand.sshd.userKey}\n${aliases}`);
    await this.#writeRemotes(entries);
    await until(async () => {
      const remotes = await this.#remotes();
      return remotes.length === IDLE_FORWARDS && remotes.every(({ proven }) => proven);
    });
    const begin = performance.now();
    const cpu = await this.#cpu();
    await sleep(IDLE_SECONDS * 1000);
    const used = (await this.#cpu()) - cpu;
    return {
      percent: (100_000 * used) / (performance.now() - begin),
      megabytes: ((await this.#memory()) - memory) / IDLE_FORWARDS,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#byHand) await ended(child);
    await this.#stand[Symbol.asyncDispose]();
  }

  async #start(): Promise<void> {
    const { home } = this.#stand;
    const key = this.#at("id");
    await runProgram("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    this.publicKey = decodePublicKeyLine(await home.read("id.pub")).blob;
    await this.#writeRemotes([this.#entry("127.0.0.1", DAEMON_SOCKET, false)]);
    await home.ok("secrets", "put", "ssh/bench", `private_key=@${key}`);
    // As users run it.
    await this.#stand.startAgent("info");
    this.#spawn("ssh-agent", ["-D", "-a", this.referenceSocket]);
    const add = async (socket: string, ...args: string[]): Promise<boolean> =>
      (await runProgram("ssh-add", args, { env: { ...process.env, SSH_AUTH_SOCK: socket } })).code === 0;
    await until(() => add(this.referenceSocket, "-q", key));
    await until(() => add(this.agentSocket, "-l"));
  }

  #at(name: string): string {
    return join(this.#stand.home.path, name);
  }

  #entry(
    host: string,
    socket: string,
    enabled: boolean,
  ): Readonly<Record<string, unknown>> & { host: string } {
    const { port, home, hostKey } = this.#stand.sshd;
    return { host, port, remote_socket: join(home, socket), enabled, host_key: hostKey };
  }

  async #writeRemotes(remotes: readonly unknown[]): Promise<void> {
    // JSON is YAML.
    await this.#stand.home.write(".config/daemon/ssh.yaml", JSON.stringify({ remotes }));
  }

  #spawn(command: string, args: readonly string[]): ChildProcess {
    const child = spawn(command, args, { stdio: "ignore" });
    this.#byHand.push(child);
    return child;
  }

  async #remotes(): Promise<readonly RemoteView[]> {
    return (await this.#stand.list()).remotes;
  }

  async #enable(enabled: boolean): Promise<void> {
    const { status } = await this.#stand.call("PATCH", "/127.0.0.1", { enabled });
    if (status !== 200) throw new Error(`the change of the remote gives ${status}`);
  }

  /** Processes of the daemon and of its ssh. */
  async #processes(): Promise<number[]> {
    const pid = this.#stand.agent?.pid;
    return [...(pid === undefined ? [] : [pid]), ...(await this.#stand.connections())];
  }

  async #cpu(): Promise<number> {
    return (await this.#processes()).reduce((sum, pid) => sum + cpuSecondsOf(pid).own, 0);
  }

  /** Proportional set size of all, in MB. */
  async #memory(): Promise<number> {
    let kilobytes = 0;
    for (const pid of await this.#processes()) {
      const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
      kilobytes += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
    }
    return kilobytes / 1000;
  }
}

/** Status of the daemon's response over a socket; undefined without one. */
async function statusAt(socketPath: string): Promise<number | undefined> {
  const request = { socketPath, path: "/healthz", timeoutMs: REQUEST_LIMIT_MS };
  return (await requestOverSocket(request).catch(() => undefined))?.status;
}

async function ended(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  await once(child, "exit");
}
