import { flagOf } from "@devplat/cli";
import { printText, visible } from "@devplat/base/terminal";
import { AgentError } from "../../errors.ts";
import { resolveMountpoint } from "../../surfaces/mount/device/mountpoint.ts";
import { unmount } from "../../surfaces/mount/device/unmount.ts";
import { isMounted, mountpointOf } from "../../surfaces/mount/mount-status.ts";
import type { RunCommand } from "../common/command.ts";
import { openContext } from "../common/context.ts";

/** Removes the filesystem mount, with or without a running daemon. */
export const run: RunCommand = async (invocation) => {
  const { host, loaded } = await openContext(invocation);
  const path = await resolveMountpoint(mountpointOf(loaded.config, host.places));
  if (!(await isMounted(path))) {
    printText(`Nothing is mounted at ${visible(path)}.\n`);
    return 0;
  }
  const lazy = flagOf(invocation.options, "lazy");
  // A mount can be below another one.
  while (await isMounted(path)) {
    try {
      await unmount(path, { lazy });
    } catch (error) {
      if (lazy || !(error instanceof AgentError)) throw error;
      throw new AgentError("mount_failed", error.message, {
        hint: "Close the programs that use it, or run it with --lazy.",
      });
    }
  }
  printText(`Unmounted ${visible(path)}.\n`);
  return 0;
};
