import { fstatSync } from "node:fs";
import type { Socket } from "node:net";

/** The part of Node's handle of a socket that tells its descriptor; Node has no public name for it. */
interface SocketHandle {
  readonly fd?: number;
}

/** File descriptor of an open socket. @returns undefined when it is closed, or the platform has none */
export function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: SocketHandle | null };
  const descriptor = handle?.fd;
  return descriptor === undefined || descriptor < 0 ? undefined : descriptor;
}

/**
 * The kernel's number of an open socket: the inode that `/proc/self/fd` and `/proc/net/tcp` show for it. No other socket
 * has the number while this one is open.
 *
 * @returns undefined when the socket has no descriptor: it is closed, or the platform has none
 */
export function inodeOf(socket: Socket): number | undefined {
  const descriptor = descriptorOf(socket);
  if (descriptor === undefined) return undefined;
  try {
    return fstatSync(descriptor).ino;
  } catch {
    return undefined;
  }
}
