import type { ListenAddress } from "./listen.ts";

/** The first descriptor that a service manager hands over (sd_listen_fds(3), SD_LISTEN_FDS_START). */
const FIRST_DESCRIPTOR = 3;

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
  const { LISTEN_PID: forPid, LISTEN_FDS: count, LISTEN_FDNAMES: names = "" } = environment;
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete environment[name];
  if (forPid !== String(pid) || count === undefined || !/^[1-9]\d?$/.test(count)) {
    return { main: undefined, metrics: undefined };
  }
  const named = names.split(":");
  const sockets = Array.from({ length: Number(count) }, (_, index) => ({
    name: named[index] ?? "",
    address: { kind: "inherited", descriptor: FIRST_DESCRIPTOR + index } as const,
  }));
  return {
    main: sockets.find(({ name }) => name !== "metrics")?.address,
    metrics: sockets.find(({ name }) => name === "metrics")?.address,
  };
}
