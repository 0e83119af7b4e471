import type { Socket } from "node:net";
import { programName, readProcess } from "@devplat/base/process-record";
import { peerCredentials } from "../../surfaces/listening/peer-credentials.ts";
import { probeListener } from "../../surfaces/listening/socket-place.ts";

/** A program that listens on a socket. */
export interface SocketOwner {
  readonly pid: number | undefined;
  /** For a message: `agent, PID 4711`. */
  readonly text: string;
}

/** The program that listens on a Unix socket; undefined if none does. */
export async function socketOwner(path: string): Promise<SocketOwner | undefined> {
  const listener = await probeListener(path, peerId);
  if (listener === undefined) return undefined;
  const pid = listener.seen;
  const found = pid === undefined ? undefined : await readProcess(pid);
  return {
    pid,
    text: found === undefined ? "another program" : `${programName(found)}, PID ${found.pid}`,
  };
}

/** For the client of a socket, its peer is the process that has called listen(2). */
function peerId(connection: Socket): number | undefined {
  const seen = peerCredentials(connection);
  seen?.handle?.[Symbol.dispose]();
  return seen?.pid;
}
