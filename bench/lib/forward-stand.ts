import { join } from "node:path";
import type { RemoteView } from "../../apps/agent/src/remote-view.ts";
import { SshStand } from "../../tests/interop/agent-ssh-stand.ts";

const SECTIONS = `store: { driver: embedded, username: ada }
api: { enabled: true }
agent: { enabled: true, keys: [{ source: kv, name: bench, path_prefix: ssh/ }] }
`;

/** An entry of `ssh.yaml` for the server of the stand. */
export interface BenchRemote {
  readonly host: string;
  /** Below the home of the account on the server. */
  readonly socket: string;
  readonly enabled: boolean;
}

/** A daemon with an SSH agent and an SSH server, for benchmarks of forwards. The daemon is not started. */
export async function forwardStand(): Promise<SshStand> {
  return await SshStand.start({ settings: ["MaxStartups 200"] }, SECTIONS);
}

/** Starts the daemon as users run it: the debug log of tests takes time. */
export async function startDaemon(stand: SshStand): Promise<void> {
  await stand.startAgent({ logLevel: "info" });
}

/** Replaces all remotes. */
export async function writeRemotes(stand: SshStand, remotes: readonly BenchRemote[]): Promise<void> {
  const { port, home, hostKey } = stand.sshd;
  const entries = remotes.map(({ host, socket, enabled }) => ({
    host,
    port,
    remote_socket: join(home, socket),
    enabled,
    host_key: hostKey,
  }));
  // JSON is YAML.
  await stand.home.write(".config/daemon/ssh.yaml", JSON.stringify({ remotes: entries }));
}

export async function remotesOf(stand: SshStand): Promise<readonly RemoteView[]> {
  return (await stand.list()).remotes;
}
