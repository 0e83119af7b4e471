import type { Socket } from "node:net";
import { peerCredentials } from "../../listening/peer-credentials.ts";
import { isStillRunning, programName, readProcess, type ProcessRecord } from "@devplat/base/process-record";

/** Processes of a chain that a prompt can show. */
const MAX_ANCESTORS = 6;
/** Programs that log in to other hosts, and that can forward a connection from there. */
const LOGIN_PROGRAMS: readonly string[] = ["ssh", "plink", "putty", "psftp", "pscp", "dbclient"];

/** The process that has connected to a socket. */
export interface PeerProcess extends ProcessRecord {
  /** Start time of the session's leader; undefined when it has ended. */
  readonly sessionStart: string | undefined;
  /** The parent and its parents, up to the session's leader. */
  readonly ancestors: readonly ProcessRecord[];
}

/**
 * - `own`: a process of this user, which is undefined where it cannot be found.
 * - `other`: a process of another user.
 */
export type Peer =
  | { readonly owner: "own"; readonly process: PeerProcess | undefined }
  | { readonly owner: "other"; readonly uid: number };

/** The process at the other end of an accepted connection. Call it as soon as the connection is there. */
export async function findPeer(socket: Socket): Promise<Peer> {
  const credentials = peerCredentials(socket);
  // Elsewhere the mode of the socket and its folder alone keep other users out.
  if (credentials === undefined) return { owner: "own", process: undefined };
  using handle = credentials.handle ?? { isAlive: () => true, [Symbol.dispose]: () => undefined };
  if (credentials.uid !== process.geteuid?.()) return { owner: "other", uid: credentials.uid };
  const record = credentials.pid === undefined ? undefined : await readProcess(credentials.pid);
  // Looked at after the reading: the PID was that of the process all the time.
  if (record === undefined || !handle.isAlive()) return { owner: "own", process: undefined };
  const leader = await readProcess(record.session);
  return {
    owner: "own",
    process: { ...record, sessionStart: leader?.startTime, ancestors: await ancestorsOf(record) },
  };
}

/** Whether a process logs in to other hosts. A process that cannot be seen may. */
export function isLoginProgram(found: PeerProcess | undefined): boolean {
  if (found === undefined) return true;
  return [programName(found), found.name].some((name) => LOGIN_PROGRAMS.includes(name));
}

/** Whether the process that has connected still runs. One that was never found is not checked. */
export async function isPeerRunning(found: PeerProcess | undefined): Promise<boolean> {
  return found === undefined || (await isStillRunning(found));
}

async function ancestorsOf({ pid, parent, session }: ProcessRecord): Promise<ProcessRecord[]> {
  const ancestors: ProcessRecord[] = [];
  let next = pid === session ? 0 : parent;
  while (next > 1 && ancestors.length < MAX_ANCESTORS) {
    const record = await readProcess(next);
    if (record === undefined) break;
    ancestors.push(record);
    next = record.pid === session ? 0 : record.parent;
  }
  return ancestors;
}
