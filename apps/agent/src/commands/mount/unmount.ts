import { flagOf, printResult } from "@devplat/cli";
import { printText, visible } from "@devplat/base/terminal";
import type { Config } from "../../config/schema.ts";
import { AgentError } from "../../errors.ts";
import type { Host } from "../../host.ts";
import { findMounter } from "../../surfaces/mount/device/mounter.ts";
import { mountUsers } from "../../surfaces/mount/device/mount-users.ts";
import { resolveMountpoint } from "../../surfaces/mount/device/mountpoint.ts";
import { isMounted, mountHelperSocket, mountpointOf } from "../../surfaces/mount/mount-status.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { DaemonRefusal, DaemonRequests } from "../common/daemon-request.ts";

/** The daemon first stores what it has only in memory. In milliseconds. */
const LIMIT_MS = 30_000;
/** Maximum number of programs in an error. */
const MAX_NAMED = 10;

/** Removes the filesystem mount, with or without a running daemon. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const { dryRun } = invocation.flags;
  const mountpoint = await resolveMountpoint(mountpointOf(loaded.config, host.places));
  const wasMounted = await isMounted(mountpoint);
  if (!dryRun) {
    const lazy = flagOf(invocation.options, "lazy");
    await askDaemon(host, loaded.config, mountpoint, lazy);
    await removeMounts(host, mountpoint, lazy);
  }
  const done = dryRun ? "Would unmount" : "Unmounted";
  const result = { mountpoint, unmounted: wasMounted && !dryRun };
  printResult(invocation.options, result, () =>
    printText(
      wasMounted ? `${done} ${visible(mountpoint)}.\n` : `Nothing is mounted at ${visible(mountpoint)}.\n`,
    ),
  );
  return 0;
};

/** The daemon stores what it has only in memory before it unmounts. Without one the command unmounts itself. */
async function askDaemon(host: Host, config: Config, path: string, lazy: boolean): Promise<void> {
  try {
    const requests = new DaemonRequests(host, config);
    await requests.change("/api/v1/unmount", { body: { lazy }, timeoutMs: LIMIT_MS });
  } catch (error) {
    if (!(error instanceof AgentError)) throw error;
    if (!(error instanceof DaemonRefusal)) return;
    if (error.problem === "mount_unsaved") throw error;
    if (error.problem === "mount_failed") throw lazy ? error : await busy(path, error.message);
  }
}

/** A mount can be below another one. */
async function removeMounts(host: Host, path: string, lazy: boolean): Promise<void> {
  const mounter = await findMounter(mountHelperSocket(host.places));
  while (await isMounted(path)) {
    try {
      await mounter.unmount(path, { lazy });
    } catch (error) {
      throw lazy || !(error instanceof AgentError) ? error : await busy(path, error.message);
    }
  }
}

/** The error with the programs that have files open. */
async function busy(path: string, message: string): Promise<AgentError> {
  const users = await mountUsers(path);
  const named = users.slice(0, MAX_NAMED).map(({ name, pid }) => `${visible(name)} (${pid})`);
  const more = users.length > MAX_NAMED ? ` and ${users.length - MAX_NAMED} more` : "";
  const programs = users.length === 0 ? "" : `: ${named.join(", ")}${more}`;
  return new AgentError("mount_failed", message, {
    hint: `Close the programs that use it${programs}. Or run it with --lazy.`,
  });
}
