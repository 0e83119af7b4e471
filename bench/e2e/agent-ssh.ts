import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { decodePublicKeyLine } from "@devplat/ssh-protocol";
import { cpuSecondsOf, run as runProgram, startSshd, tempFolder, until, type Sshd } from "@devplat/testkit";
import { medianOf } from "../lib/agent-requests.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { interleave, summarize, type Summary } from "../lib/statistics.ts";

const LAUNCHER = resolve(import.meta.dirname, "../../apps/agent/bin/agent");
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
const DAEMON_SOCKET = ".ssh/ours.sock";

/** Managed forwards against `ssh -N -R` by hand, and the daemon's SSH agent against OpenSSH's. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-ssh");
  const sshd = await startSshd({ settings: ["MaxStartups 200"] });
  const stand = new Stand(folder.path, sshd);
  try {
    await stand.start();
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
  } finally {
    await stand.stop();
    await sshd.stop();
    await folder.remove();
  }
}

const bound = (value: number): Summary => ({ min: value, median: value, max: value, runs: 1 });

/** A daemon with one remote and one key, and the same by hand. */
class Stand {
  readonly #home: string;
  readonly #sshd: Sshd;
  readonly #children: ChildProcess[] = [];
  #daemon: ChildProcess | undefined;
  #byHand: ChildProcess | undefined;
  publicKey: Buffer = Buffer.alloc(0);

  constructor(home: string, sshd: Sshd) {
    this.#home = home;
    this.#sshd = sshd;
  }

  get agentSocket(): string {
    return join(this.#home, "run/daemon/ssh-agent.sock");
  }

  get referenceSocket(): string {
    return join(this.#home, "reference.sock");
  }

  get #api(): string {
    return join(this.#home, "run/daemon/api.sock");
  }

  async start(): Promise<void> {
    const at = (name: string): string => join(this.#home, name);
    for (const name of ["run", ".config/daemon"]) await mkdir(at(name), { recursive: true, mode: 0o700 });
    await mkdir(join(this.#sshd.home, ".ssh"), { recursive: true, mode: 0o700 });
    await runProgram("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("id")]);
    this.publicKey = decodePublicKeyLine(await readFile(at("id.pub"), "utf8")).blob;
    await writeFile(at("ssh_config"), `IdentityAgent none\nIdentityFile ${this.#sshd.userKey}\n`);
    const wrapper = `#!/bin/sh\ncase " $* " in *" -G "*) exec ssh -F ${at("ssh_config")} "$@";; esac\nexec ssh "$@"\n`;
    await writeFile(at("ssh"), wrapper, { mode: 0o700 });
    const config = `store: { driver: embedded, username: ada }
api: { enabled: true }
agent: { enabled: true, keys: [{ source: kv, name: bench, path_prefix: ssh/ }] }
ssh: { command: ${at("ssh")} }
`;
    await writeFile(at(".config/daemon/config.yaml"), config, { mode: 0o600 });
    await this.#writeRemotes([this.#entry("127.0.0.1", DAEMON_SOCKET, false)]);
    const env = {
      PATH: process.env["PATH"],
      HOME: this.#home,
      XDG_RUNTIME_DIR: at("run"),
      XDG_CONFIG_DIRS: at("etc"),
    };
    const put = await runProgram(LAUNCHER, ["secrets", "put", "ssh/bench", `private_key=@${at("id")}`], {
      env,
    });
    if (put.code !== 0) throw new Error(put.stderr);
    this.#daemon = this.#spawn(LAUNCHER, ["run"], env);
    this.#spawn("ssh-agent", ["-D", "-a", this.referenceSocket], process.env);
    await until(async () => (await this.#status(this.#api, "/api/v1/status")) === 200);
    const add = async (socket: string, ...args: string[]): Promise<boolean> =>
      (await runProgram("ssh-add", args, { env: { ...process.env, SSH_AUTH_SOCK: socket } })).code === 0;
    await until(() => add(this.referenceSocket, "-q", at("id")));
    await until(() => add(this.agentSocket, "-l"));
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  }

  /** Milliseconds until the daemon's forward is proven. It stays up. */
  async managedUp(): Promise<number> {
    await this.#change("PATCH", "/api/v1/ssh/remotes/127.0.0.1", { enabled: false });
    await until(async () => (await this.#remotes())[0]?.state === "disabled");
    const begin = performance.now();
    await this.#change("PATCH", "/api/v1/ssh/remotes/127.0.0.1", { enabled: true });
    for (;;) {
      const [remote] = await this.#remotes();
      if (remote?.proven === true) return performance.now() - begin;
      await sleep(2);
    }
  }

  /** Milliseconds until a forward by hand gives the first response. It stays up. */
  async byHandUp(): Promise<number> {
    this.#byHand?.kill("SIGTERM");
    if (this.#byHand !== undefined) await once(this.#byHand, "exit");
    const socket = join(this.#sshd.home, "by-hand.sock");
    await rm(socket, { force: true });
    const begin = performance.now();
    const args = ["-N", "-R", `${socket}:${this.#api}`, ...this.#sshd.clientArgs];
    this.#byHand = this.#spawn("ssh", args, process.env);
    while ((await this.#status(socket, "/healthz")) !== 200) await sleep(2);
    return performance.now() - begin;
  }

  /** Median time of a request over a forward, in milliseconds. */
  async health(name: string): Promise<number> {
    const socket = join(this.#sshd.home, name);
    const times: number[] = [];
    for (let count = 0; count < REQUESTS; count++) {
      const begin = performance.now();
      if ((await this.#status(socket, "/healthz")) !== 200) throw new Error(`no response at ${name}`);
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
    await writeFile(
      join(this.#home, "ssh_config"),
      `IdentityAgent none\nIdentityFile ${this.#sshd.userKey}\n${aliases}`,
    );
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

  #entry(
    host: string,
    socket: string,
    enabled: boolean,
  ): Readonly<Record<string, unknown>> & { host: string } {
    return {
      host,
      port: this.#sshd.port,
      remote_socket: join(this.#sshd.home, socket),
      enabled,
      host_key: this.#sshd.hostKey,
    };
  }

  async #writeRemotes(remotes: readonly unknown[]): Promise<void> {
    // JSON is YAML.
    const path = join(this.#home, ".config/daemon/ssh.yaml");
    await writeFile(path, JSON.stringify({ remotes }), { mode: 0o600 });
  }

  #spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
    const child = spawn(command, args, { env, stdio: "ignore" });
    this.#children.push(child);
    return child;
  }

  async #remotes(): Promise<{ state: string; proven: boolean }[]> {
    const response = await send(this.#api, "GET", "/api/v1/ssh/remotes");
    return (JSON.parse(await text(response)) as { remotes: { state: string; proven: boolean }[] }).remotes;
  }

  async #change(method: string, path: string, body: object): Promise<void> {
    const csrf = JSON.parse(await text(await send(this.#api, "GET", "/api/v1/csrf"))) as { token: string };
    const response = await send(this.#api, method, path, { token: csrf.token, body: JSON.stringify(body) });
    response.resume();
    if (response.statusCode !== 200) throw new Error(`${method} ${path} gives ${response.statusCode}`);
  }

  async #status(socket: string, path: string): Promise<number | undefined> {
    const response = await send(socket, "GET", path).catch(() => undefined);
    response?.resume();
    return response?.statusCode;
  }

  /** Processes of the daemon and of its ssh. */
  async #processes(): Promise<number[]> {
    const found = this.#daemon?.pid === undefined ? [] : [this.#daemon.pid];
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
      if (line.startsWith("ssh\0") && line.includes(`${this.#home}/run/`)) found.push(Number(name));
    }
    return found;
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

async function send(
  socketPath: string,
  method: string,
  path: string,
  change?: { readonly token: string; readonly body: string },
): Promise<IncomingMessage> {
  const headers =
    change === undefined ? {} : { "X-CSRF-Token": change.token, "Content-Type": "application/json" };
  const outgoing = request({ socketPath, method, path, headers });
  outgoing.end(change?.body);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  return response;
}
