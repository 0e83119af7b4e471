import type { Findings } from "@devplat/cli/findings";
import { BRAND } from "../../brand.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { readDaemonStatus } from "../../surfaces/socket/daemon-status.ts";
import { agentSocket } from "../ssh-agent/agent-socket.ts";
import { runTool } from "../../platform/run-tool.ts";
import { offeredKeys } from "../ssh-agent/signing-key.ts";

/** The first OpenSSH whose ssh tells the agent to which host it connects (session-bind@openssh.com). */
const SESSION_BIND_SINCE = [8, 9] as const;

/** Looks at the socket of the SSH agent, at its sources, and at what programs of this shell use. Nothing while it is off. */
export async function examineSshAgent(
  host: Host,
  { config }: LoadedConfig,
  findings: Findings,
): Promise<void> {
  if (!config.agent.enabled) return;
  const { environment, places } = host;
  const socket = agentSocket(host, config);
  await findings.attempt("SSH agent", async () => {
    const keys = await offeredKeys(socket, environment);
    return `answers on ${socket} with ${keys.length} keys`;
  });
  await findings.attempt("SSH_AUTH_SOCK", async () =>
    environment["SSH_AUTH_SOCK"] === socket
      ? "is the socket of the daemon"
      : { warning: `is not the socket of the daemon; run eval "$(${BRAND.command} ssh-env)"` },
  );
  await findings.attempt("ssh for keys with hosts", async () => {
    const { stderr } = await runTool("ssh", ["-V"], { environment });
    const [, text = "", major = "0", minor = "0"] =
      /^OpenSSH_(?:for_Windows_)?((\d+)\.(\d+)[a-z0-9]*)/.exec(stderr) ?? [];
    const [wantedMajor, wantedMinor] = SESSION_BIND_SINCE;
    const isNew =
      Number(major) > wantedMajor || (Number(major) === wantedMajor && Number(minor) >= wantedMinor);
    if (isNew) return `OpenSSH ${text}`;
    return { warning: `OpenSSH ${text} is older than 8.9: keys with 'hosts' are withheld from it` };
  });
  const { ssh_agent: status } = await readDaemonStatus(places, config);
  for (const { socket: path, reason } of status?.socket_problems ?? []) {
    await findings.attempt(`SSH agent's socket ${path}`, async () => ({ fault: reason }));
  }
  for (const { name, error } of status?.sources ?? []) {
    await findings.attempt(`keys of ${name}`, async () => (error === null ? "" : { fault: error }));
  }
}
