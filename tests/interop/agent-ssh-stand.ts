import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  AGENT_LAUNCHER,
  run,
  runAtTerminal,
  startSshd,
  tempFolder,
  until,
  type Finished,
  type Sshd,
  type SshdOptions,
  type TempFolder,
  type TerminalSession,
} from "@devplat/testkit";
import { requestOverSocket } from "../../apps/agent/src/peers/socket-request.ts";
import { DaemonClient, type DaemonResponse } from "../../apps/agent/src/surfaces/socket/daemon-client.ts";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { Home, daemon, type RunningAgent, type DaemonOptions } from "./agent-stand.ts";

export const REMOTES = "/api/v1/ssh/remotes";
/** Path of the API socket below the home of a stand. */
export const AGENT_SOCKET = "run/daemon/api.sock";
/** Sections of the configuration besides `ssh`. */
const SECTIONS = `store: { driver: embedded }
api: { enabled: true }
`;
type TerminalAnswers = NonNullable<Parameters<typeof runAtTerminal>[2]["answers"]>;
/** A dial has its own limits; this one is for hangs. In milliseconds. */
const DIAL_LIMIT_MS = 120_000;

/** A home whose ssh reads the test's configuration in place of the one of this machine's user, and an SSH server. */
export class SshStand {
  readonly home: Home;
  readonly sshd: Sshd;
  readonly #folder: TempFolder;
  readonly #client: DaemonClient;
  agent: RunningAgent | undefined;

  private constructor(folder: TempFolder, sshd: Sshd, environment: NodeJS.ProcessEnv) {
    this.#folder = folder;
    this.sshd = sshd;
    this.home = new Home(folder.path, {
      ...environment,
      XDG_RUNTIME_DIR: join(folder.path, "run"),
      // Programs of the test come before those of this machine.
      PATH: `${join(folder.path, "bin")}:${process.env["PATH"] ?? ""}`,
    });
    this.#client = new DaemonClient(join(folder.path, "run/daemon"), join(folder.path, AGENT_SOCKET));
  }

  /**
   * @param sections of the configuration besides `ssh`. Default: an embedded store and the API socket
   * @param environment of the daemon and the commands, besides the usual one
   */
  static async start(
    options: SshdOptions = {},
    sections = SECTIONS,
    environment: NodeJS.ProcessEnv = {},
  ): Promise<SshStand> {
    const folder = await tempFolder("af");
    const stand = new SshStand(folder, await startSshd(options), environment);
    await stand.home.write(
      "ssh",
      `#!/bin/sh\ncase " $* " in *" -G "*) exec ssh -F ${folder.path}/ssh_config "$@";; esac\nexec ssh "$@"\n`,
      0o700,
    );
    await stand.sshConfig(`IdentityFile ${stand.sshd.userKey}\n`);
    await stand.home.configure(`${sections}ssh: { command: ${folder.path}/ssh }\n`);
    return stand;
  }

  /** Replaces the ssh configuration of the user. */
  async sshConfig(text: string): Promise<void> {
    await this.home.write("ssh_config", `IdentityAgent none\n${text}`);
  }

  /** Runs `agent ssh`. */
  ssh(...args: string[]): Promise<Finished> {
    return this.home.agent(["ssh", ...args]);
  }

  /** Runs `agent ssh` at a terminal. */
  sshAtTerminal(args: readonly string[], answers: TerminalAnswers): Promise<TerminalSession> {
    return runAtTerminal(AGENT_LAUNCHER, ["ssh", ...args], { env: this.home.env, answers });
  }

  get file(): string {
    return join(this.home.path, ".config/daemon/ssh.yaml");
  }

  /** Where the remote socket of the tests' entries is. */
  get remoteSocket(): string {
    return join(this.sshd.home, ".ssh/daemon.test.sock");
  }

  async startAgent(options: DaemonOptions = {}): Promise<RunningAgent> {
    const isReady = async (): Promise<boolean> => (await this.#client.get("/api/v1/status"))?.status === 200;
    this.agent = await daemon(this.home, isReady, options);
    return this.agent;
  }

  async call(method: "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<DaemonResponse> {
    const answer = await this.#client.change(`${REMOTES}${path}`, {
      method,
      timeoutMs: DIAL_LIMIT_MS,
      ...(body !== undefined && { body }),
    });
    assert.ok(answer, this.agent?.log() ?? "no daemon");
    return answer;
  }

  async list(): Promise<{ remotes: RemoteView[]; file_problem: string | null }> {
    const answer = await this.#client.get(REMOTES);
    return answer?.body as { remotes: RemoteView[]; file_problem: string | null };
  }

  async get(path: string): Promise<unknown> {
    return (await this.#client.get(path))?.body;
  }

  async metrics(): Promise<string> {
    const socketPath = join(this.home.path, "run/daemon/api.sock");
    const answer = await requestOverSocket({ socketPath, path: "/metrics", timeoutMs: DIAL_LIMIT_MS });
    return answer.body.toString();
  }

  /** Waits until the only remote is in a state. */
  async state(state: RemoteView["state"]): Promise<RemoteView> {
    let last: RemoteView | undefined;
    await until(
      async () => {
        last = (await this.list()).remotes[0];
        return last?.state === state;
      },
      () => `${JSON.stringify(last)}\n${this.agent?.log() ?? ""}`,
    );
    return last as RemoteView;
  }

  /** Waits until the log tells of so many failed attempts more. */
  async attempts(count: number): Promise<void> {
    const failed = (): number => (this.agent?.log() ?? "").split('"state":"offline"').length - 1;
    const wanted = failed() + count;
    await until(
      async () => failed() >= wanted,
      () => this.agent?.log() ?? "",
    );
  }

  /** Adds the server, whose key is confirmed. */
  async add(more: object = {}): Promise<RemoteView> {
    const body = {
      host: this.sshd.address,
      port: this.sshd.port,
      remote_socket: "~/.ssh/daemon.test.sock",
      ...more,
    };
    const asked = await this.call("POST", "", body);
    assert.equal(asked.status, 409, JSON.stringify(asked.body));
    const { offered } = asked.body as { offered: { fingerprint: string } };
    const added = await this.call("POST", "", { ...body, accept_fingerprint: offered.fingerprint });
    assert.equal(added.status, 201, JSON.stringify(added.body));
    return added.body as RemoteView;
  }

  /** Status of a request over the remote socket, as a user of the remote host makes it. */
  async remote(path: string, ...more: string[]): Promise<string> {
    const { stdout } = await run(
      "curl",
      [
        "-s",
        "-w",
        "%{http_code}",
        "--max-time",
        "10",
        "--unix-socket",
        this.remoteSocket,
        ...more,
        `http://localhost${path}`,
      ],
      {},
    );
    return stdout;
  }

  /** Processes of ssh below the runtime folder of this stand. */
  async connections(): Promise<number[]> {
    const found: number[] = [];
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const line = await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "");
      if (line.startsWith("ssh\0") && line.includes(`${this.home.path}/run/`)) found.push(Number(name));
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.agent?.stop();
    await this.sshd.stop();
    await this.#folder.remove();
  }
}
