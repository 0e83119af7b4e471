import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { endpoint, parseSocketTable, type SocketRecord } from "./socket-table.ts";

/**
 * - `own`: the other end belongs to the user that runs this daemon.
 * - `other`: it belongs to somebody else.
 * - `unknown`: no record of it, or the other end has closed it already (the kernel then shows uid 0).
 */
export type Owner = "own" | "other" | "unknown";

/** IPv4 sockets, and IPv6 sockets; the latter may speak IPv4 with a mapped address. */
export type SocketTable = "tcp" | "tcp6";

/** Where the kernel lists the sockets, and who we are. Passed in, so that a test can be another user. */
export interface SocketOwners {
  /** The sockets of this network namespace with that local port; rejects where there is no such list. */
  read(table: SocketTable, localPort: number): Promise<readonly SocketRecord[]>;
  /** Effective user id of this process; undefined where there is none. */
  readonly uid: number | undefined;
}

export const systemSocketOwners: SocketOwners = {
  read: async (table, localPort) =>
    parseSocketTable(await readFile(`/proc/net/${table}`, "latin1"), localPort),
  uid: process.geteuid?.(),
};

/**
 * Tells whose process is at the other end of a loopback connection. Any user of the host can connect to a loopback
 * port; a Unix socket would have permissions, a TCP port has none.
 */
export class PortGuard {
  readonly #owners: SocketOwners;
  readonly #verdicts = new WeakMap<Socket, Promise<Owner>>();

  constructor(owners: SocketOwners = systemSocketOwners) {
    this.#owners = owners;
  }

  /**
   * The owner of a connection, found once per connection: call it when the connection is accepted, while the other
   * end is surely open.
   */
  ownerOf(socket: Socket): Promise<Owner> {
    let verdict = this.#verdicts.get(socket);
    if (verdict === undefined) {
      verdict = this.#find(socket);
      this.#verdicts.set(socket, verdict);
    }
    return verdict;
  }

  /**
   * Whether owners can be told apart here: tried with a connection of our own, because a sandbox may hide the list
   * or show every user as one.
   */
  async works(): Promise<boolean> {
    if (this.#owners.uid === undefined || (await isOverflowUid(this.#owners.uid))) return false;
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    try {
      const [accepted] = (await once(server, "connection")) as [Socket];
      const owner = await this.#find(accepted);
      accepted.destroy();
      return owner === "own";
    } catch {
      return false;
    } finally {
      client.destroy();
      server.close();
    }
  }

  async #find(socket: Socket): Promise<Owner> {
    // Seen from the other end: its local address is our remote one. Both must fit, or another connection with the
    // same port on another loopback address could stand in.
    const local = endpoint(socket.remoteAddress, socket.remotePort);
    const remote = endpoint(socket.localAddress, socket.localPort);
    if (local === undefined || remote === undefined) return "unknown";
    let found: readonly SocketRecord[] = [];
    try {
      // The kernel takes milliseconds to list a table, so the second is read only where the first has nothing.
      for (const table of tablesFor(socket)) {
        const records = await this.#owners.read(table, socket.remotePort ?? 0);
        found = records.filter((record) => record.local === local && record.remote === remote);
        if (found.length > 0) break;
      }
    } catch {
      return "unknown";
    }
    // A closed socket has inode 0 and uid 0: for a daemon of root that must not look like root.
    if (found.length === 0 || found.some((record) => record.inode === 0)) return "unknown";
    return found.every((record) => record.uid === this.#owners.uid) ? "own" : "other";
  }
}

function tablesFor(socket: Socket): readonly SocketTable[] {
  return socket.remoteFamily === "IPv6" ? ["tcp6"] : ["tcp", "tcp6"];
}

/** In a user namespace every user without a mapping shows as the overflow uid; if we are that, all look like us. */
async function isOverflowUid(uid: number): Promise<boolean> {
  try {
    const overflow = Number(await readFile("/proc/sys/kernel/overflowuid", "latin1"));
    if (uid !== overflow) return false;
    const map = (await readFile("/proc/self/uid_map", "latin1")).trim().split(/\s+/).map(Number);
    return !(map.length === 3 && map[0] === 0 && map[2] === 0xffff_ffff);
  } catch {
    return false;
  }
}
