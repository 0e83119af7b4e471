import { createConnection } from "node:net";
import { programName, readProcess } from "@devplat/base/process-record";
import { isAnswering } from "../../surfaces/listening/socket-place.ts";
import { peerCredentials } from "../../surfaces/listening/peer-credentials.ts";

/** A connection to a listener of this host is there immediately, or never. In milliseconds. */
const TIMEOUT_MS = 1000;

/** A program that listens on a socket. */
export interface SocketOwner {
  readonly pid: number | undefined;
  /** For a message: `agent, PID 4711`. */
  readonly text: string;
}

/** The program that listens on a Unix socket; undefined if none does. */
export async function socketOwner(path: string): Promise<SocketOwner | undefined> {
  if (!(await isAnswering(path))) return undefined;
  const pid = await listenerPid(path);
  const found = pid === undefined ? undefined : await readProcess(pid);
  return {
    pid,
    text: found === undefined ? "another program" : `${programName(found)}, PID ${found.pid}`,
  };
}

/** For the client of a socket, its peer is the process that has called listen(2). */
function listenerPid(path: string): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const connection = createConnection(path);
  connection.setTimeout(TIMEOUT_MS, () => resolve(undefined));
  connection.once("error", () => resolve(undefined));
  connection.once("connect", () => {
    const seen = peerCredentials(connection);
    seen?.handle?.[Symbol.dispose]();
    resolve(seen?.pid);
  });
  return promise.finally(() => connection.destroy());
}
