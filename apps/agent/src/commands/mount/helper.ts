import { mountIdentity, mountHelperSocket, mountpointOf } from "../../surfaces/mount/mount-status.ts";
import { HelperMounts } from "../../surfaces/mount/helper/helper-mounts.ts";
import { HelperServer } from "../../surfaces/mount/helper/helper-server.ts";
import { activatedSockets } from "../../surfaces/listening/activation.ts";
import type { RunCommand } from "../common/command.ts";
import { loadWith, openContext } from "../common/context.ts";
import { untilStopped } from "../common/signals.ts";

/** The mount helper: a service unit runs it, next to a daemon whose own unit forbids new privileges. */
export const run: RunCommand = async (invocation) => {
  const stop = untilStopped();
  try {
    const { host } = await openContext(invocation);
    const { places, environment, logger } = host;
    const server = new HelperServer({
      path: mountHelperSocket(places),
      descriptor: activatedSockets(environment, process.pid).get("mount"),
      mounts: new HelperMounts({
        mountpoint: async () => {
          // It may have changed since the last request.
          const { config } = await loadWith(host, invocation.flags.config, "cached");
          return mountpointOf(config, places);
        },
        identity: mountIdentity(),
      }),
      logger,
    });
    await server.run(stop.signal);
    return 0;
  } finally {
    stop.release();
  }
};
