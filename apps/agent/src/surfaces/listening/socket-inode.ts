import { fstatSync } from "node:fs";
import type { Socket } from "node:net";
import { descriptorOf } from "@devplat/base/socket-descriptor";

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
