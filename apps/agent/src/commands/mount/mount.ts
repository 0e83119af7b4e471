import { printResult } from "@devplat/cli";
import { printText, visible } from "@devplat/base/terminal";
import { mountpointOf } from "../../surfaces/mount/mount-status.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";
import { DaemonRequests } from "../common/daemon-request.ts";

/** The daemon starts a process for the mount. In milliseconds. */
const LIMIT_MS = 30_000;

/** Has the running daemon make the filesystem mount. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const mountpoint = mountpointOf(loaded.config, host.places);
  const { dryRun } = invocation.flags;
  if (!dryRun) await new DaemonRequests(host, loaded.config).change("/api/v1/mount", { timeoutMs: LIMIT_MS });
  const result = { mountpoint, mounted: !dryRun };
  printResult(invocation.options, result, () =>
    printText(`${dryRun ? "Would mount" : "Mounted"} ${visible(mountpoint)}.\n`),
  );
  return 0;
};
