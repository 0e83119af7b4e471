import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { loadavg } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { openEmbeddedStore, userRoot } from "@devplat/secret-store";
import {
  cpuSecondsOf,
  run as runCommand,
  startVault,
  startVaultProxy,
  tempFolder,
  type Vault,
  type VaultProxy,
} from "@devplat/testkit";
import { buildAgent } from "../../tools/build/agent.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { percentile, summarize } from "../lib/statistics.ts";

const UNCHANGED_RULES = 200;
const MANY_RULES = 1000;
const SECRETS = 200;
/** Cycles per sample: one takes a few ticks of the kernel's 10 ms CPU clock. */
const CYCLES = 10;
const CHANGES = 100;
/** Seconds of silence per sample. */
const IDLE_SECONDS = Number(process.env["IDLE_SECONDS"] ?? 30);
/** After work a daemon still collects its garbage for a while; in milliseconds. */
const SETTLE_MS = 30_000;

/** The daemon's sync against the targets of its budget: cycles, idling, and how long a change takes to its file. */
export async function run(rounds: number): Promise<Report> {
  const folder = await tempFolder("bench-agent-sync");
  const vault = await startVault();
  const proxy = await startVaultProxy(vault.address, { events: true });
  try {
    const launcher = await buildAgent(join(folder.path, "release"));
    for (let i = 0; i < SECRETS; i++) await vault.put(`users/ada/s${i}`, { token: `value-${i}` });
    const stand = new Stand(folder.path, launcher, vault, proxy);
    const unchanged = await stand.unchanged(rounds);
    const many = await stand.manyRules(rounds);
    const embedded = await stand.embeddedChanges();
    const events = await stand.eventChanges();
    const bound = (what: string, unit: string, ours: readonly number[], atMost: number): Row => ({
      what,
      unit,
      ours: summarize(ours),
      reference: summarize([atMost]),
      referenceName: "at most",
      target: { atMost: 1 },
    });
    return {
      name: "agent-sync",
      title: "Sync of the daemon",
      method: `The bundled daemon with its web page on, against a real Vault (development mode) behind a counting proxy. ${UNCHANGED_RULES} rules on as many files and secrets, nothing to change: ${CYCLES} cycles a sample, ${rounds} samples; then ${IDLE_SECONDS} s of silence a sample. ${CHANGES} changes one after the other, from the moment of the write until the file holds it. The event stream is a stand-in of Vault's protocol: the community build has none.`,
      rows: [
        bound("cycle over 200 unchanged rules, CPU", "ms", unchanged.cpuMs, 150),
        bound("the same, metadata requests", "", unchanged.metadata, UNCHANGED_RULES),
        bound("idle with web on, CPU", "%", unchanged.idlePercent, 0.1),
        bound("idle with web on, resident memory", "MB", unchanged.residentMb, 90),
        bound("change to file, embedded store, 95th percentile", "ms", [percentile(embedded, 0.95)], 100),
        bound("change to file, events (stand-in), 95th percentile", "ms", [percentile(events, 0.95)], 100),
      ],
      notes: [
        `Requests for values in these cycles: ${unchanged.values}.`,
        `${MANY_RULES} rules over ${SECRETS} secrets, every file new, \`agent sync\` as a whole: median ${many.first.toFixed(0)} ms; again with nothing to change: ${many.again.toFixed(0)} ms.`,
        `The load of the machine at the end: ${(loadavg()[0] ?? 0).toFixed(0)}. More than its cores means that others shared it, and times are longer than they would be; CPU and memory are not.`,
        `Change to file, median: embedded ${percentile(embedded, 0.5).toFixed(0)} ms, events ${percentile(events, 0.5).toFixed(0)} ms.`,
      ],
    };
  } finally {
    proxy.stop();
    await vault.stop();
    await folder.remove();
  }
}

class Stand {
  readonly #folder: string;
  readonly #launcher: string;
  readonly #vault: Vault;
  readonly #proxy: VaultProxy;

  constructor(folder: string, launcher: string, vault: Vault, proxy: VaultProxy) {
    this.#folder = folder;
    this.#launcher = launcher;
    this.#vault = vault;
    this.#proxy = proxy;
  }

  async unchanged(rounds: number) {
    const home = await this.#home("unchanged", UNCHANGED_RULES);
    const daemon = await this.#daemon(home);
    const cpuMs: number[] = [];
    const metadata: number[] = [];
    const idlePercent: number[] = [];
    const residentMb: number[] = [];
    let values = 0;
    try {
      await daemon.sync();
      for (let round = 0; round < rounds; round++) {
        this.#proxy.calls.length = 0;
        const before = cpuSecondsOf(daemon.pid).own;
        for (let i = 0; i < CYCLES; i++) await daemon.sync();
        cpuMs.push(((cpuSecondsOf(daemon.pid).own - before) * 1000) / CYCLES);
        const count = (part: string): number =>
          this.#proxy.calls.filter(({ path }) => path.includes(part)).length;
        metadata.push(count("/kv/metadata/") / CYCLES);
        values += count("/kv/data/");
        await sleep(SETTLE_MS);
        const quiet = cpuSecondsOf(daemon.pid).own;
        await sleep(IDLE_SECONDS * 1000);
        idlePercent.push(((cpuSecondsOf(daemon.pid).own - quiet) / IDLE_SECONDS) * 100);
        residentMb.push(await residentMegabytes(daemon.pid));
      }
    } finally {
      await daemon.stop();
    }
    return { cpuMs, metadata, values, idlePercent, residentMb };
  }

  async manyRules(rounds: number): Promise<{ first: number; again: number }> {
    const first: number[] = [];
    const again: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const home = await this.#home(`many-${round}`, MANY_RULES);
      for (const times of [first, again]) {
        const start = performance.now();
        const { code, stderr } = await runCommand(this.#launcher, ["sync", "--log-level", "error"], {
          env: environment(home),
        });
        if (code !== 0) throw new Error(`agent sync ended with ${code}: ${stderr.slice(0, 500)}`);
        times.push(performance.now() - start);
      }
    }
    return { first: summarize(first).median, again: summarize(again).median };
  }

  async embeddedChanges(): Promise<number[]> {
    const home = await this.#home("embedded", 1, "store: {driver: embedded, username: ada}");
    const root = userRoot({ mount: "kv", prefix: "users/", username: "ada" });
    await mkdir(join(home, ".local/share"), { recursive: true, mode: 0o700 });
    const store = await openEmbeddedStore({ folder: join(home, ".local/share/daemon"), root });
    const write = async (value: string): Promise<void> =>
      void (await store.write("s0", new Map([["token", value]])));
    try {
      return await this.#changes(home, write);
    } finally {
      await store.close();
    }
  }

  async eventChanges(): Promise<number[]> {
    const home = await this.#home("events", 1);
    return this.#changes(home, async (value) => {
      await this.#vault.put("users/ada/s0", { token: value });
      this.#proxy.events.announce("kv-v2/data-write", "kv/data/users/ada/s0");
    });
  }

  /** Milliseconds from each write's beginning until the file holds it. */
  async #changes(home: string, write: (value: string) => Promise<void>): Promise<number[]> {
    await write("first");
    const daemon = await this.#daemon(home);
    const file = join(home, "files/f0.yaml");
    const times: number[] = [];
    try {
      await daemon.sync();
      for (let i = 0; i < CHANGES; i++) {
        const start = performance.now();
        await write(`change-${i}`);
        while (!(await readFile(file, "utf8")).includes(`change-${i}\n`)) await sleep(1);
        times.push(performance.now() - start);
        await sleep(20);
      }
    } finally {
      await daemon.stop();
    }
    return times;
  }

  async #home(name: string, rules: number, store?: string): Promise<string> {
    const home = join(this.#folder, name);
    await mkdir(join(home, ".config/daemon"), { recursive: true, mode: 0o700 });
    const list = Array.from(
      { length: rules },
      (_, i) =>
        `  - {name: r${i}, key: s${i % SECRETS}, target: {path: "~/files/f${i}.yaml", format: yaml}}\n`,
    );
    const central = `store: {address: "${this.#proxy.url}", username: ada}`;
    await writeFile(
      join(home, ".config/daemon/config.yaml"),
      `${store ?? central}\nsync: {interval: 1h}\nweb: {enabled: true, listen: "127.0.0.1:0"}\nrules:\n${list.join("")}`,
      { mode: 0o600 },
    );
    await writeFile(join(home, ".daemon-token"), this.#vault.rootToken, { mode: 0o600 });
    return home;
  }

  async #daemon(home: string): Promise<BenchDaemon> {
    const child = spawn(this.#launcher, ["run", "--log-level", "warn"], {
      env: environment(home),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const daemon = new BenchDaemon(child, /http:\/\/[^/\s]+/.exec(line.toString())?.[0] ?? "");
    while (!(await daemon.hasSynced())) await sleep(20);
    return daemon;
  }
}

class BenchDaemon {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #url: string;

  constructor(child: ChildProcess, url: string) {
    this.pid = child.pid ?? 0;
    this.#child = child;
    this.#url = url;
  }

  async hasSynced(): Promise<boolean> {
    const status = JSON.parse(await this.#call("GET", "/api/v1/status")) as {
      sync?: { last_cycle_at: string | null };
    };
    return (status.sync?.last_cycle_at ?? null) !== null;
  }

  /** One cycle, all of it. */
  async sync(): Promise<void> {
    const { token } = JSON.parse(await this.#call("GET", "/api/v1/csrf")) as { token: string };
    await this.#call("POST", "/api/v1/sync?wait=true", { "X-CSRF-Token": token });
  }

  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await once(this.#child, "exit");
  }

  async #call(method: string, path: string, headers: Record<string, string> = {}): Promise<string> {
    const outgoing = request(this.#url + path, { method, headers });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    const body = await text(incoming);
    if ((incoming.statusCode ?? 500) >= 300)
      throw new Error(`${method} ${path}: ${incoming.statusCode} ${body.slice(0, 300)}`);
    return body;
  }
}

function environment(home: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"],
    HOME: home,
    XDG_CONFIG_DIRS: join(home, "etc"),
    AGENT_NODE: process.execPath,
  };
}

async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6;
}
