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

/** Where the kernel lists the sockets, and who we are. Passed in, so that a test can be another user. */
export interface SocketOwners {
  /** The sockets of this network namespace; rejects where there is no such list. */
  read(): Promise<readonly SocketRecord[]>;
  /** Effective user id of this process; undefined where there is none. */
  readonly uid: number | undefined;
}

export const systemSocketOwners: SocketOwners = {
  read: async () => {
    const ipv4 = await readFile("/proc/net/tcp", "latin1");
    // A kernel without IPv6 has no second table, and then no such connection either.
    const ipv6 = await readFile("/proc/net/tcp6", "latin1").catch(() => "");
    return [...parseSocketTable(ipv4), ...parseSocketTable(ipv6)];
  },
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
    let records: readonly SocketRecord[];
    try {
      records = await this.#owners.read();
    } catch {
      return "unknown";
    }
    const found = records.filter((record) => record.local === local && record.remote === remote);
    // A closed socket has inode 0 and uid 0: for a daemon of root that must not look like root.
    if (found.length === 0 || found.some((record) => record.inode === 0)) return "unknown";
    return found.every((record) => record.uid === this.#owners.uid) ? "own" : "other";
  }
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
