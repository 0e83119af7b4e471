import { readFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { once } from "node:events";
import { inodeOf } from "../../listening/socket-inode.ts";
import type { SocketOwners, SocketTable } from "./socket-owners.ts";
import { SocketSnapshots } from "./socket-snapshots.ts";
import { endpoint, TCP_STATE, type SocketRecord } from "./socket-table.ts";

/** The other end may have sent all that it will send, and still wait for the response. */
const PEER_STATES: readonly number[] = [TCP_STATE.established, TCP_STATE.finWait1, TCP_STATE.finWait2];
/** States of our end that it cannot come back to after the other end has released the connection. */
const OWN_STATES: readonly number[] = [TCP_STATE.established, TCP_STATE.closeWait];
/** A list that changes while the kernel writes it may lack a socket: the look-up is made at most so many times. */
const MAX_LOOKS = 3;

/**
 * - `own`: the other end belongs to the user that runs this daemon.
 * - `other`: it belongs to another user.
 * - `unknown`: no record of it, or one of the ends has closed the connection already.
 */
export type Owner = "own" | "other" | "unknown";

/**
 * Tells whose process is at the other end of a loopback connection. Any user of the host can connect to a loopback
 * port; a Unix socket would have permissions, a TCP port has none.
 */
export class PortGuard {
  readonly #owners: SocketOwners;
  readonly #snapshots: SocketSnapshots;
  readonly #verdicts = new WeakMap<Socket, Promise<Owner>>();

  constructor(owners: SocketOwners) {
    this.#owners = owners;
    this.#snapshots = new SocketSnapshots(owners);
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
    // All of this is read before the first wait, while the descriptor surely is that of this connection.
    const inode = inodeOf(socket);
    const [near, far] = [
      endpoint(socket.localAddress, socket.localPort),
      endpoint(socket.remoteAddress, socket.remotePort),
    ];
    if (inode === undefined || near === undefined || far === undefined) return "unknown";
    const connection = { inode, near, far, port: socket.localPort ?? 0, tables: tablesFor(socket) };
    for (let look = 0; look < MAX_LOOKS && !socket.destroyed; look += 1) {
      const owner = await this.#look(connection).catch(() => "unknown" as const);
      if (owner !== "unknown") return owner;
    }
    return "unknown";
  }

  /**
   * One look-up. Addresses and ports alone do not say that a record is of this connection: after a reset another process
   * may have taken the same source port. So our own end must be there under its inode, in the same list and again in a
   * later one. It was connected all the time between the two, and the kernel gives its addresses and ports to no second
   * connection during that time.
   */
  async #look({ inode, near, far, port, tables: [first, second] }: Connection): Promise<Owner> {
    const isOwnEnd = (record: SocketRecord): boolean =>
      record.inode === inode &&
      record.local === near &&
      record.remote === far &&
      OWN_STATES.includes(record.state);
    const isOtherEnd = ({ local, remote }: SocketRecord): boolean => local === far && remote === near;

    const records = await this.#snapshots.read(first, port);
    if (!records.some(isOwnEnd)) return "unknown";
    let others = records.filter(isOtherEnd);
    // An IPv6 socket may speak IPv4 with us.
    if (others.length === 0 && second !== undefined)
      others = (await this.#snapshots.read(second, port)).filter(isOtherEnd);
    // A closed socket has inode 0 and uid 0: for a daemon of root that must not look like root.
    const held = others.every(({ inode: other, state }) => other !== 0 && PEER_STATES.includes(state));
    if (others.length === 0 || !held) return "unknown";
    if (!(await this.#snapshots.read(first, port)).some(isOwnEnd)) return "unknown";
    return others.every(({ uid }) => uid === this.#owners.uid) ? "own" : "other";
  }
}

/** An accepted connection, as the kernel's lists name it. */
interface Connection {
  /** Inode of this end. */
  readonly inode: number;
  readonly near: string;
  readonly far: string;
  /** The port that we listen on. */
  readonly port: number;
  /** Our end is in the first. */
  readonly tables: readonly [SocketTable, SocketTable?];
}

function tablesFor(socket: Socket): Connection["tables"] {
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
