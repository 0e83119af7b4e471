import { printLine } from "@devplat/base/terminal";
import type { Host } from "../host.ts";
import { BRAND } from "../brand.ts";
import { AgentError } from "../errors.ts";
import { WriterLock } from "../sync/lock.ts";
import type { RunCommand } from "./command.ts";
import { openContext } from "./context.ts";
import { DaemonPid } from "./daemon-pid.ts";

/** Checks the configuration and has the running daemon read it again. */
export const run: RunCommand = async (invocation) => {
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

/** Tells the running daemon to read everything again. Gives false if there is none. */
export async function signalDaemon(host: Host): Promise<boolean> {
  if (!(await isDaemonRunning(host))) return false;
  const pid = await new DaemonPid(host.places.runtime).read();
  if (pid === undefined) return false;
  try {
    process.kill(pid, "SIGHUP");
    return true;
  } catch {
    return false;
  }
}

/** A process id alone proves nothing: numbers are used again. The lock ends with its process. */
export async function isDaemonRunning(host: Host): Promise<boolean> {
  try {
    using lock = await WriterLock.acquire(host.places.state, 0);
    host.logger.debug({ lock: lock.path }, "nobody holds the lock");
    return false;
  } catch (error) {
    if (error instanceof AgentError && error.code === "locked") return true;
    throw error;
  }
}
