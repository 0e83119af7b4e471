import { open } from "node:fs/promises";
import { exists, systemCode } from "@devplat/base";
import type { Findings } from "@devplat/cli/findings";
import { BRAND } from "../../brand.ts";
import type { LoadedConfig } from "../../config/load.ts";
import type { Host } from "../../host.ts";
import { canRun } from "../../platform/programs.ts";
import { isAnswering } from "../../surfaces/listening/socket-place.ts";
import { readDaemonStatus } from "../../surfaces/socket/daemon-status.ts";
import { isMounted, mountHelperSocket, mountpointOf } from "../../surfaces/mount/mount-status.ts";

const DEVICE = "/dev/fuse";

/** Tries what the filesystem mount needs, and the mount itself. Nothing while it is off. */
export async function examineMount(host: Host, { config }: LoadedConfig, findings: Findings): Promise<void> {
  if (!config.fuse.enabled) return;
  if (process.platform !== "linux") {
    await findings.attempt("mount", async () => ({ fault: "fuse.enabled works only on Linux" }));
    return;
  }
  await findings.attempt(DEVICE, async () => {
    try {
      await using _ = await open(DEVICE, "r+");
      return "can be opened";
    } catch (error) {
      const reason = systemCode(error) ?? "unknown error";
      const isMissing = reason === "ENOENT" || reason === "ENODEV";
      return {
        fault: `cannot be opened (${reason}); ${isMissing ? "run 'modprobe fuse'" : "its mode should be 0666"}`,
      };
    }
  });
  if (process.geteuid?.() !== 0)
    await findings.attempt("fusermount3", async () =>
      canRun("fusermount3", host.environment) ? "found" : { fault: "not found; install the package fuse3" },
    );
  const helper = mountHelperSocket(host.places);
  if (await exists(helper))
    await findings.attempt("mount helper", async () =>
      (await isAnswering(helper))
        ? `answers at ${helper}`
        : { warning: `does not answer at ${helper}; only a daemon without new privileges needs it` },
    );
  await findings.attempt("mount", async () => {
    const mountpoint = mountpointOf(config, host.places);
    if (!(await isMounted(mountpoint))) {
      const { fuse } = await readDaemonStatus(host.places, config);
      const { problem = null, state } = fuse ?? {};
      if (problem !== null) return { fault: problem };
      if (state === "unmounted")
        return { warning: `unmounted by request; '${BRAND.command} mount' mounts again` };
      return { warning: `nothing is mounted at ${mountpoint}; '${BRAND.command} status' tells more` };
    }
    const { probeMount } = await import("../../surfaces/mount/device/mountpoint.ts");
    const health = await probeMount(mountpoint);
    if (health === "alive") return `answers at ${mountpoint}`;
    return {
      fault: `${mountpoint} ${health === "stale" ? "has lost its server" : "does not answer"}; run '${BRAND.command} unmount'`,
    };
  });
}
