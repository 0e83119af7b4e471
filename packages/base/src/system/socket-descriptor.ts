import type { Socket } from "node:net";

/** The part of Node's handle of a socket that tells its descriptor; Node has no public name for it. */
interface SocketHandle {
  readonly fd?: number;
}

/** File descriptor of an open socket. @returns undefined when it is closed, is a TLS socket, or the platform has none */
export function descriptorOf(socket: Socket): number | undefined {
  const { _handle: handle } = socket as unknown as { _handle?: SocketHandle | null };
  const descriptor = handle?.fd;
  return descriptor === undefined || descriptor < 0 ? undefined : descriptor;
}
