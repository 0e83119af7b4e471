import { createLogger, systemClock } from "@devplat/base";
import { tempFolder, type Sshd, type TempFolder } from "@devplat/testkit";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import type { ConnectionParts, PeerServer, PeerSocket } from "./connection.ts";
import type { TrustSettings } from "./connection-files.ts";
import type { RemoteEntry } from "./file/remote-entry.ts";
import { ControlFolder } from "./openssh/control-folder.ts";
import { ProcessLimits } from "./openssh/process-limits.ts";
import { SshProgram } from "./openssh/ssh-program.ts";
import { userConfiguration, type ResolveHost } from "./openssh/user-configuration.ts";

/** A peer server that answers nothing but the nonce, and remembers its sockets. */
export class TestPeers implements PeerServer {
  readonly open = new Set<string>();
  readonly #hosts = new Map<string, string>();

  hostOf(nonce: string): string | undefined {
    return this.#hosts.get(nonce);
  }

  async listen(path: string, { host }: Pick<RemoteEntry, "host">): Promise<PeerSocket> {
    const nonce = randomBytes(16).toString("hex");
    const server = createServer((_request, response) =>
      response.end(JSON.stringify({ status: "ok", nonce })),
    );
    server.listen(path);
    await once(server, "listening");
    this.open.add(path);
    this.#hosts.set(nonce, host);
    return {
      nonce,
      lendBy: async () => undefined,
      close: async () => {
        this.open.delete(path);
        this.#hosts.delete(nonce);
        server.closeAllConnections();
        server.close();
      },
    };
  }
}

/** Everything that a forward needs on this host, with the user's ssh configuration in a file of the test. */
export class TestStation {
  readonly peers = new TestPeers();
  readonly log: string[] = [];
  readonly ssh: SshProgram;
  readonly folder: ControlFolder;
  readonly runtime: string;
  readonly trust: { -readonly [Key in keyof TrustSettings]: TrustSettings[Key] } = {
    authorities: [],
    ignoreHostKeys: false,
  };
  readonly #temp: TempFolder;

  private constructor(temp: TempFolder) {
    this.#temp = temp;
    this.runtime = join(temp.path, "ssh");
    this.ssh = new SshProgram({ command: "ssh", environment: process.env });
    this.folder = new ControlFolder({ path: this.runtime, ssh: this.ssh });
  }

  static async create(): Promise<TestStation> {
    return new TestStation(await tempFolder("fwd"));
  }

  /** In a folder that another process of the test has made. */
  static async at(path: string): Promise<TestStation> {
    return new TestStation({ path, remove: async () => undefined });
  }

  get path(): string {
    return this.#temp.path;
  }

  /** Parts of a connection whose user has this ssh configuration. */
  async parts(configuration: string): Promise<ConnectionParts> {
    return {
      ssh: this.ssh,
      folder: this.folder,
      resolve: await this.resolve(configuration),
      peers: this.peers,
      limits: new ProcessLimits(systemClock),
      clock: systemClock,
      logger: createLogger({ format: "json", destination: { write: (line) => void this.log.push(line) } }),
      trust: () => this.trust,
      identityAgent: async () => undefined,
    };
  }

  /** Asks `ssh -G` with a file in place of the user's configuration. */
  async resolve(configuration: string): Promise<ResolveHost> {
    const file = join(this.path, `user-config-${randomBytes(3).toString("hex")}`);
    await writeFile(file, configuration);
    const asked = {
      run: (args: readonly string[], timeoutMs: number) => this.ssh.run(["-F", file, ...args], timeoutMs),
    };
    return userConfiguration(asked);
  }

  async remove(): Promise<void> {
    await this.#temp.remove();
  }
}

/** The user's configuration for logging in to a server of the test. */
export function loginTo(...servers: readonly Sshd[]): string {
  return `IdentityAgent none\n${servers.map(({ userKey }) => `IdentityFile ${userKey}\n`).join("")}`;
}

/** An entry for a server of the test. */
export function entryFor(sshd: Sshd, more: Partial<RemoteEntry> = {}): RemoteEntry {
  return {
    host: "127.0.0.1",
    port: sshd.port,
    remote_socket: "~/.ssh/daemon.test.sock",
    host_key: sshd.hostKey,
    enabled: true,
    ...more,
  };
}
