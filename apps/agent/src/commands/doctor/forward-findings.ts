import { exists } from "@devplat/base";
import type { Findings } from "@devplat/cli/findings";
import { hostname } from "node:os";
import { remotesPath } from "../../assemble/forward-places.ts";
import { expandHome } from "../../config/sections/rule.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { readDaemonStatus } from "../../surfaces/socket/daemon-status.ts";

/** Looks at ssh.yaml, at the ssh program, and at what the running daemon says of each forward. Nothing without ssh.yaml. */
export async function examineForwards(
  { places, environment }: Host,
  { config }: LoadedConfig,
  findings: Findings,
): Promise<void> {
  const path = remotesPath(places);
  if (!(await exists(path))) return;
  const [{ RemotesFile }, { defaultRemoteSocket }, { SshProgram }] = await Promise.all([
    import("../../surfaces/forwards/file/remotes-file.ts"),
    import("../../surfaces/forwards/file/remote-entry.ts"),
    import("../../surfaces/forwards/openssh/ssh-program.ts"),
  ]);
  await findings.attempt("ssh.yaml", async () => {
    const entries = await new RemotesFile({ path, defaultSocket: defaultRemoteSocket(hostname()) }).read();
    return `${entries.filter(({ enabled }) => enabled).length} of ${entries.length} remotes are enabled`;
  });
  await findings.attempt("ssh", async () => {
    const ssh = new SshProgram({ command: expandHome(config.ssh.command, places.home), environment });
    return `OpenSSH ${await ssh.checkVersion()}`;
  });
  const { remotes = [] } = await readDaemonStatus(places, config);
  for (const { host, enabled, state, error, tokens } of remotes) {
    if (!enabled) continue;
    await findings.attempt(`forward to ${host}`, async () => {
      if (error !== null) return { fault: `${error.message}. ${error.advice}` };
      return tokens.problem === null ? state : { warning: tokens.problem };
    });
  }
}
