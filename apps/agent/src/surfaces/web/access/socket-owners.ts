import { readFile } from "node:fs/promises";
import { parseSocketTable, type SocketRecord } from "./socket-table.ts";

/** IPv4 sockets, and IPv6 sockets; the latter may speak IPv4 with a mapped address. */
export type SocketTable = "tcp" | "tcp6";

/** The socket lists of the kernel, and the user of this process. A parameter, so that a test can be another user. */
export interface SocketOwners {
  /** Sockets of this network namespace with a port at either end. Rejects where there is no such list. */
  read(table: SocketTable, port: number): Promise<readonly SocketRecord[]>;
  /** Effective user id of this process; undefined where there is none. */
  readonly uid: number | undefined;
}

export const systemSocketOwners: SocketOwners = {
  read: async (table, port) => parseSocketTable(await readFile(`/proc/net/${table}`, "latin1"), port),
  uid: process.geteuid?.(),
};
