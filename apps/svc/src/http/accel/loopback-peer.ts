import type { Socket } from "node:net";

const LOOPBACK = /^(?:(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1)$/;

/** Whether a connection is from this machine: over a loopback address or a Unix socket. */
export function isLoopbackPeer(
  socket: Pick<Socket, "destroyed" | "localAddress" | "remoteAddress">,
): boolean {
  const { destroyed, localAddress, remoteAddress } = socket;
  if (destroyed) return false;
  // A Unix socket has neither address.
  if (remoteAddress === undefined) return localAddress === undefined;
  return LOOPBACK.test(remoteAddress);
}
