/** The first descriptor that a service manager hands over (sd_listen_fds(3): SD_LISTEN_FDS_START). */
const FIRST_DESCRIPTOR = 3;
/** A count from 1 to 99. A service has a few sockets; a larger count is a mistake. */
const COUNT = /^[1-9]\d?$/;

/** A listening socket that a service manager has opened for this process. */
export interface HandedOverSocket {
  /** `FileDescriptorName=` of its unit; empty without one. */
  readonly name: string;
  readonly descriptor: number;
}

/**
 * Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES` (sd_listen_fds(3)).
 * @returns none without them, and none where they are meant for another process, such as a parent that did not remove them
 */
export function handedOverSockets(environment: NodeJS.ProcessEnv, pid: number): readonly HandedOverSocket[] {
  const { LISTEN_PID: forPid, LISTEN_FDS: count, LISTEN_FDNAMES: names = "" } = environment;
  if (forPid !== String(pid) || count === undefined || !COUNT.test(count)) return [];
  const named = names.split(":");
  return Array.from({ length: Number(count) }, (_, index) => ({
    name: named[index] ?? "",
    descriptor: FIRST_DESCRIPTOR + index,
  }));
}
