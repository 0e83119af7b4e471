import { silentLogger } from "@devplat/base";
import { preventCoreDumps } from "../../../core-dumps.ts";
import { CHANNEL_DESCRIPTOR } from "../mount-process.ts";
import { runMountServer } from "./run-mount.ts";

/** The process that serves the mount. Its memory holds secrets. @returns the exit code */
export async function main(): Promise<number> {
  // A terminal and systemd signal all processes. This one ends after the daemon, which first has it store new files.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  preventCoreDumps(silentLogger);
  await runMountServer(CHANNEL_DESCRIPTOR);
  return 0;
}
