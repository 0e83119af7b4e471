import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { signalProcess } from "@devplat/base/process-signal";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import type { TestNetwork } from "./network.ts";
import { startPeer, type PeerCommand } from "./peer.ts";
import { onPath } from "./peer-programs.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A real SSH server for this machine's own user. */
export interface Sshd {
  readonly address: string;
  readonly port: number;
  /** Its host key, as `type base64`. */
  readonly hostKey: string;
  /** Path of a private key that may log in. */
  readonly userKey: string;
  /** Home folder of the account, for SFTP. */
  readonly home: string;
  /** Arguments of `ssh` that log in to it without a question: key, known host, port, user and address. */
  readonly clientArgs: readonly string[];
  /** Its log. */
  output(): string;
  /** Sends a signal to the server and to the processes of all its connections. */
  signal(signal: NodeJS.Signals): Promise<void>;
  /** Ends the server and all its connections; its port refuses connections until {@link resume}. */
  pause(): Promise<void>;
  /** Starts it again on the same port. @param newHostKey with another host key */
  resume(newHostKey?: boolean): Promise<void>;
  stop(): Promise<void>;
}

export interface SshdOptions {
  /** Lines of sshd_config, before all others: of most options the first value counts. */
  readonly settings?: readonly string[];
  /** Program of the SFTP subsystem. Default: a server that works. */
  readonly sftp?: string;
  /** Network namespace with another address than this one's, made by {@link startNetwork}. Default: loopback. */
  readonly network?: Pick<TestNetwork, "namespace" | "address">;
}

/** OpenSSH's server, which is not in the PATH of an ordinary user. */
export function sshdProgram(): string {
  // It insists on being called by its whole path.
  const found = onPath("sshd") ?? ["/usr/sbin/sshd", "/usr/libexec/sshd"].find((path) => existsSync(path));
  if (found === undefined) throw TestkitError.missing("sshd");
  return found;
}

/** Starts sshd, on loopback unless told otherwise, with keys of its own; no configuration of the machine or its user is read. */
export async function startSshd({ settings: given = [], sftp, network }: SshdOptions = {}): Promise<Sshd> {
  const address = network?.address ?? "127.0.0.1";
  const folder = await tempFolder("sshd");
  const at = (name: string): string => join(folder.path, name);
  const home = at("home");
  await mkdir(home, { mode: 0o700 });
  const makeKey = async (name: string): Promise<void> => {
    for (const file of [name, `${name}.pub`]) await rm(at(file), { force: true });
    const made = await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)], {});
    if (made.code !== 0) throw TestkitError.failed("ssh-keygen", made.stderr);
  };
  await makeKey("host");
  await makeKey("user");
  await writeFile(at("authorized"), await readFile(at("user.pub")));
  await chmod(at("authorized"), 0o600);
  // Where root starts it, it wants this folder for its unprivileged half.
  if (process.geteuid?.() === 0) await mkdir("/run/sshd", { recursive: true });
  let port = 0;
  const prepare = async (): Promise<PeerCommand> => {
    if (port === 0) port = await freePort();
    const settings = [
      ...given,
      `ListenAddress ${address}:${port}`,
      `HostKey ${at("host")}`,
      `AuthorizedKeysFile ${at("authorized")}`,
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "UsePAM no",
      // The keys lie in a folder of a test.
      "StrictModes no",
      "PidFile none",
      "StreamLocalBindUnlink yes",
      // The home folder of SFTP; logins have the one of this machine's user.
      `Subsystem sftp ${sftp ?? `internal-sftp -d ${home}`}`,
    ];
    await writeFile(at("config"), `${settings.join("\n")}\n`);
    const command = [sshdProgram(), "-D", "-e", "-f", at("config")];
    const [program = "", ...args] =
      network === undefined ? command : ["ip", "netns", "exec", network.namespace, ...command];
    return {
      command: program,
      args,
      isReady: (output) => output.includes("Server listening"),
    };
  };
  // The port may have been taken between the choice and the start.
  const prepareAnew = (): Promise<PeerCommand> => {
    port = 0;
    return prepare();
  };
  let peer = await startPeer("sshd", prepareAnew);
  let hostKey = "";
  const readHostKey = async (): Promise<void> => {
    hostKey = (await readFile(at("host.pub"), "utf8")).split(" ").slice(0, 2).join(" ");
    await writeFile(at("known"), `[${address}]:${port} ${hostKey}\n`);
  };
  await readHostKey();
  const end = async (): Promise<void> => {
    const children = await descendants(peer.pid);
    await peer.stop();
    // They end with their connections.
    for (const pid of children) signalProcess(pid, "SIGKILL");
  };
  const options = [
    "IdentitiesOnly=yes",
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${at("known")}`,
  ];
  return {
    address,
    port,
    get hostKey() {
      return hostKey;
    },
    userKey: at("user"),
    home,
    output: () => peer.output(),
    signal: async (signal) => {
      for (const pid of [peer.pid, ...(await descendants(peer.pid))]) process.kill(pid, signal);
    },
    clientArgs: [
      "-F",
      "none",
      "-i",
      at("user"),
      "-p",
      String(port),
      ...options.flatMap((option) => ["-o", option]),
      `${userInfo().username}@${address}`,
    ],
    pause: end,
    resume: async (newHostKey = false) => {
      if (newHostKey) await makeKey("host");
      await readHostKey();
      peer = await startPeer("sshd", prepare);
    },
    stop: async () => {
      await end();
      await folder.remove();
    },
  };
}

/** Processes that a process has started, and those that they have started: each connection has a session of its own. */
async function descendants(pid: number): Promise<number[]> {
  const parents = new Map<number, number>();
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "");
    // Behind the name, in parentheses: state, parent (proc(5)).
    parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
  }
  const below = (each: number): number[] =>
    [...parents].filter(([, parent]) => parent === each).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}
