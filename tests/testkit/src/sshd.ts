import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { TestkitError } from "./errors.ts";
import { freePort } from "./free-port.ts";
import { startPeer } from "./peer.ts";
import { onPath } from "./peer-programs.ts";
import { run } from "./process.ts";
import { tempFolder } from "./temp-folder.ts";

/** A real SSH server for this machine's own user. */
export interface Sshd {
  readonly port: number;
  /** Arguments of `ssh` that log in to it without a question: key, known host, port, user and address. */
  readonly clientArgs: readonly string[];
  stop(): Promise<void>;
}

/** OpenSSH's server, which lies outside of an ordinary user's PATH. */
export function sshdProgram(): string {
  // It insists on being called by its whole path.
  const found = onPath("sshd") ?? ["/usr/sbin/sshd", "/usr/libexec/sshd"].find((path) => existsSync(path));
  if (found === undefined) throw TestkitError.missing("sshd");
  return found;
}

/** Starts sshd on loopback with keys of its own; no configuration of the machine or its user is read. */
export async function startSshd(): Promise<Sshd> {
  const folder = await tempFolder("sshd");
  const at = (name: string): string => join(folder.path, name);
  for (const name of ["host", "user"]) {
    const made = await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at(name)], {});
    if (made.code !== 0) throw TestkitError.failed("ssh-keygen", made.stderr);
  }
  await writeFile(at("authorized"), await readFile(at("user.pub")));
  await chmod(at("authorized"), 0o600);
  // Where root starts it, it wants this folder for its unprivileged half.
  if (process.geteuid?.() === 0) await mkdir("/run/sshd", { recursive: true });
  let port = 0;
  const peer = await startPeer("sshd", async () => {
    port = await freePort();
    const settings = [
      `ListenAddress 127.0.0.1:${port}`,
      `HostKey ${at("host")}`,
      `AuthorizedKeysFile ${at("authorized")}`,
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "UsePAM no",
      // The keys lie in a folder of a test.
      "StrictModes no",
      "PidFile none",
      "StreamLocalBindUnlink yes",
    ];
    await writeFile(at("config"), `${settings.join("\n")}\n`);
    return {
      command: sshdProgram(),
      args: ["-D", "-e", "-f", at("config")],
      isReady: (output) => output.includes("Server listening"),
    };
  });
  const hostKey = (await readFile(at("host.pub"), "utf8")).split(" ").slice(0, 2).join(" ");
  await writeFile(at("known"), `[127.0.0.1]:${port} ${hostKey}\n`);
  const options = [
    "IdentitiesOnly=yes",
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${at("known")}`,
  ];
  return {
    port,
    clientArgs: [
      "-F",
      "none",
      "-i",
      at("user"),
      "-p",
      String(port),
      ...options.flatMap((option) => ["-o", option]),
      `${userInfo().username}@127.0.0.1`,
    ],
    stop: async () => {
      await peer.stop();
      await folder.remove();
    },
  };
}
