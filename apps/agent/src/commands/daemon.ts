import { printResult } from "@devplat/cli";
import { printLine } from "@devplat/base/terminal";
import { loadConfig } from "../config/load.ts";
import { apiSocketPath } from "../surfaces/socket/places.ts";
import { requestOpenLink } from "../surfaces/socket/open-link.ts";
import type { RunCommand } from "./common/command.ts";
import { hostOf, openContext } from "./common/context.ts";
import { signalDaemon } from "./common/daemon-process.ts";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";

/** Asks the running daemon for a link into its web UI. */
export const open: RunCommand = async (invocation) => {
  const { places } = hostOf(invocation);
  // The daemon runs with a configuration that was good; one that has been broken since does not matter here.
  const loaded = await loadConfig(places, invocation.flags.config).catch(() => undefined);
  const socketPath = apiSocketPath(places, loaded?.config.api);
  const link = await requestOpenLink(places.runtime, socketPath);
  printResult(invocation.options, { url: link }, () => printLine(link));
  return 0;
};

/** Checks the configuration and has the running daemon read it again. */
export const reload: RunCommand = async (invocation) => {
  const { host } = await openContext(invocation);
  if (invocation.flags.dryRun) {
    printLine("the configuration is valid; the daemon was not told");
    return 0;
  }
  if (!(await signalDaemon(host))) {
    throw new AgentError("daemon_unreachable", "no daemon of this user is running", {
      hint: `'${BRAND.command} run' starts one; it reads the configuration then.`,
    });
  }
  printLine(`the daemon reads its configuration again; '${BRAND.command} status' shows what it made of it`);
  return 0;
};
