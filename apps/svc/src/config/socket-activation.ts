import { handedOverSockets } from "@devplat/base/handed-over";
import type { ListenAddress } from "./listen.ts";

/** The sockets that a service manager opened for this process. */
export interface ActivatedSockets {
  /** In the place of `server.listen`. */
  readonly main: ListenAddress | undefined;
  /** In the place of `metrics.listen`: the one named `metrics` (`FileDescriptorName=`). */
  readonly metrics: ListenAddress | undefined;
}

/**
 * Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES` (sd_listen_fds(3)), and takes them out of the environment, so that
 * no child takes them for its own. Without them, or meant for another process: none.
 */
export function takeActivatedSockets(environment: NodeJS.ProcessEnv, pid: number): ActivatedSockets {
  const sockets = handedOverSockets(environment, pid).map(({ name, descriptor }) => ({
    name,
    address: { kind: "inherited", descriptor } as const,
  }));
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete environment[name];
  return {
    main: sockets.find(({ name }) => name !== "metrics")?.address,
    metrics: sockets.find(({ name }) => name === "metrics")?.address,
  };
}
