import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodePublicKeyLine } from "@devplat/ssh-protocol";
import { run as runProgram, until } from "@devplat/testkit";
import { requestOverSocket } from "../../apps/agent/src/peers/socket-request.ts";
import { AGENT_SOCKET, type SshStand } from "../../tests/interop/agent-ssh-stand.ts";
import { medianOf } from "../lib/agent-requests.ts";
import { forwardStand, remotesOf, startDaemon, writeRemotes } from "../lib/forward-stand.ts";
import type { Report } from "../lib/report.ts";
import type { Row } from "../lib/row.ts";
import { exactly, interleave, summarize } from "../lib/statistics.ts";

/** Requests of one sample, one after another. */
const REQUESTS = 300;
const IDENTITIES_MS = 2;
/** Bytes that are signed, as many as in a login. */
const DATA_BYTES = 250;
/** For hangs, in milliseconds. */
const REQUEST_LIMIT_MS = 10_000;
const DAEMON_SOCKET = ".ssh/ours.sock";

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
  const row = (what: string, unit: Row["unit"], values: readonly number[], more: Partial<Row>): Row => ({
    what,
    unit,
    ours: summarize([...values]),
    reference: exactly(1),
    referenceName: "the bound",
    ...more,
  });
  const byHand = { referenceName: "ssh -N -R by hand" };
  return {
    name: "agent-ssh",
    title: "Managed forwards and the SSH agent of the daemon",
    method: `The daemon from its sources, sshd on loopback; ${rounds} rounds, both kinds in turn. Up: from the request to the first response over the remote socket; a managed one must be proven, too. Requests: the median of ${REQUESTS}, one after another, each on a connection of its own for health.`,
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
      row("Ed25519 signature with audit, p50", "µs", agents.sign, {
        reference: summarize(agents.referenceSign),
        referenceName: "ssh-agent",
        target: { atMost: 2 },
      }),
      row("identities, warm, p50", "µs", agents.list, {
        reference: exactly(IDENTITIES_MS * 1000),
        target: { atMost: 1 },
      }),
    ],
  };
}

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
    const comparison = new Comparison(await forwardStand());
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
    await until(async () => (await remotesOf(this.#stand))[0]?.state === "disabled");
    const begin = performance.now();
    await this.#enable(true);
    for (;;) {
      const [remote] = await remotesOf(this.#stand);
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

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#byHand) await ended(child);
    await this.#stand[Symbol.asyncDispose]();
  }

  async #start(): Promise<void> {
    const { home } = this.#stand;
    const key = this.#at("id");
    await runProgram("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    this.publicKey = decodePublicKeyLine(await home.read("id.pub")).blob;
    await writeRemotes(this.#stand, [{ host: "127.0.0.1", socket: DAEMON_SOCKET, enabled: false }]);
    await home.ok("secrets", "put", "ssh/bench", `private_key=@${key}`);
    await startDaemon(this.#stand);
    this.#spawn("ssh-agent", ["-D", "-a", this.referenceSocket]);
    const add = async (socket: string, ...args: string[]): Promise<boolean> =>
      (await runProgram("ssh-add", args, { env: { ...process.env, SSH_AUTH_SOCK: socket } })).code === 0;
    await until(() => add(this.referenceSocket, "-q", key));
    await until(() => add(this.agentSocket, "-l"));
  }

  #at(name: string): string {
    return join(this.#stand.home.path, name);
  }

  #spawn(command: string, args: readonly string[]): ChildProcess {
    const child = spawn(command, args, { stdio: "ignore" });
    this.#byHand.push(child);
    return child;
  }

  async #enable(enabled: boolean): Promise<void> {
    const { status } = await this.#stand.call("PATCH", "/127.0.0.1", { enabled });
    if (status !== 200) throw new Error(`the change of the remote gives ${status}`);
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
