import { silentLogger } from "@devplat/base";
import { preventCoreDumps } from "../../../core-dumps.ts";
import { CHANNEL_DESCRIPTOR } from "../mount-process.ts";
import { runMountServer } from "./mount-server.ts";

/** The process that serves the mount. Its memory holds secrets. @returns the exit code */
export async function main(): Promise<number> {
  preventCoreDumps(silentLogger);
  await runMountServer(CHANNEL_DESCRIPTOR);
  return 0;
}
