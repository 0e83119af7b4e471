import assert from "node:assert/strict";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run, startSshd, tempFolder, until, type Sshd, type TempFolder } from "@devplat/testkit";
import { DaemonClient, type DaemonResponse } from "../../apps/agent/src/surfaces/socket/daemon-client.ts";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { Home, daemon, type RunningAgent } from "./agent-stand.ts";

const REMOTES = "/api/v1/ssh/remotes";
const CONFIG = (home: string): string => `store: { driver: embedded }
api: { enabled: true }
ssh: { command: ${home}/ssh }
`;
/** A dial has its own limits; this one is for hangs. In milliseconds. */
const DIAL_LIMIT_MS = 120_000;

/** A home whose ssh reads the test's configuration in place of the one of this machine's user, and an SSH server. */
class Stand {
  readonly home: Home;
  readonly sshd: Sshd;
  readonly #folder: TempFolder;
  readonly #client: DaemonClient;
  agent: RunningAgent | undefined;

  private constructor(folder: TempFolder, sshd: Sshd) {
    this.#folder = folder;
    this.sshd = sshd;
    this.home = new Home(folder.path, { XDG_RUNTIME_DIR: join(folder.path, "run") });
    const runtime = join(folder.path, "run/daemon");
    this.#client = new DaemonClient(runtime, join(runtime, "api.sock"));
  }

  static async start(): Promise<Stand> {
    const folder = await tempFolder("af");
    const stand = new Stand(folder, await startSshd());
    await stand.home.write(
      "ssh",
      `#!/bin/sh\ncase " $* " in *" -G "*) exec ssh -F ${folder.path}/ssh_config "$@";; esac\nexec ssh "$@"\n`,
      0o700,
    );
    await stand.home.write("ssh_config", `IdentityAgent none\nIdentityFile ${stand.sshd.userKey}\n`);
    await stand.home.configure(CONFIG(folder.path));
    return stand;
  }

  get file(): string {
    return join(this.home.path, ".config/daemon/ssh.yaml");
  }

  /** Where the remote socket of the tests' entries is. */
  get remoteSocket(): string {
    return join(this.sshd.home, ".ssh/daemon.test.sock");
  }

  async startAgent(): Promise<RunningAgent> {
    this.agent = await daemon(this.home, async () => (await this.#client.get("/healthz"))?.status === 200);
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

  /** Adds the server, whose key is confirmed. */
  async add(more: object = {}): Promise<RemoteView> {
    const body = {
      host: "127.0.0.1",
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

describe("managed SSH forwards of a running daemon", () => {
  it("a remote is added once its key is confirmed, serves its offers, and is removed", async () => {
    await using stand = await Stand.start();
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
});
