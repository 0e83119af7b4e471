import assert from "node:assert/strict";
import { once } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { connect, createServer, Socket, type AddressInfo } from "node:net";
import { after, describe, it } from "node:test";
import { PortGuard } from "./port-guard.ts";
import { systemSocketOwners, type SocketOwners } from "./socket-owners.ts";
import { inodeOf } from "../../listening/socket-inode.ts";
import { SocketSnapshots } from "./socket-snapshots.ts";
import { endpoint, TCP_STATE, type SocketRecord } from "./socket-table.ts";

const ME = 1000;
const server = createServer();
server.listen(0, "127.0.0.1");
await once(server, "listening");
const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
const [accepted] = (await once(server, "connection")) as [Socket];
after(() => {
  client.destroy();
  server.close();
});

const near = endpoint(accepted.localAddress, accepted.localPort) ?? "";
const far = endpoint(accepted.remoteAddress, accepted.remotePort) ?? "";
const { established, closeWait, finWait2 } = TCP_STATE;
const SYN_SENT = 2;
const CLOSED = 7;
/** The records of the other end and of our end. */
const peer: SocketRecord = { local: far, remote: near, state: established, uid: ME, inode: 7 };
const ours: SocketRecord = {
  local: near,
  remote: far,
  state: established,
  uid: ME,
  inode: inodeOf(accepted) ?? 0,
};

/** Lists that are read one after another; the last one stays. */
function owners(lists: readonly (readonly SocketRecord[])[], uid: number | undefined = ME): SocketOwners {
  let read = 0;
  return { uid, read: async () => lists[Math.min(read++, lists.length - 1)] ?? [] };
}

describe("inodeOf", () => {
  it("is the number that /proc/self/fd shows for the accepted descriptor", async () => {
    const names = await readdir("/proc/self/fd");
    const links = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
    assert.ok(links.includes(`socket:[${inodeOf(accepted)}]`));
  });

  it("is undefined for a closed socket", () => {
    assert.equal(inodeOf(new Socket().destroy()), undefined);
  });
});

describe("PortGuard.ownerOf", () => {
  const table: [string, readonly (readonly SocketRecord[])[], number, string][] = [
    ["a record with our uid is our own", [[peer, ours]], ME, "own"],
    ["a record with another uid is another user's", [[{ ...peer, uid: 1001 }, ours]], ME, "other"],
    ["root is another user for a daemon that is not root's", [[{ ...peer, uid: 0 }, ours]], ME, "other"],
    ["root's open socket is root's own", [[{ ...peer, uid: 0 }, ours]], 0, "own"],
    [
      "a closed socket shows uid 0 and does not pass for root",
      [[{ ...peer, uid: 0, inode: 0 }, ours]],
      0,
      "unknown",
    ],
    ["no record of the other end is unknown", [[ours]], ME, "unknown"],
    ["another port does not count", [[{ ...peer, local: `${far}1` }, ours]], ME, "unknown"],
    [
      "the same port on another loopback address does not count",
      [[{ ...peer, local: far.replace("7f000001", "7f000002") }, ours]],
      ME,
      "unknown",
    ],
    ["our own end does not count as the other one", [[{ ...ours, inode: 7 }, ours]], ME, "unknown"],
    ["two records of different users are not our own", [[peer, { ...peer, uid: 1001 }, ours]], ME, "other"],
    [
      "a client that has sent all it will send is our own",
      [
        [
          { ...peer, state: finWait2 },
          { ...ours, state: closeWait },
        ],
      ],
      ME,
      "own",
    ],
    ["no record of our own end is unknown", [[peer]], ME, "unknown"],
    [
      "our own end under another inode is another connection",
      [[peer, { ...ours, inode: ours.inode + 1 }]],
      ME,
      "unknown",
    ],
    [
      "our own end that nobody has accepted is another connection",
      [[peer, { ...ours, inode: 0 }]],
      ME,
      "unknown",
    ],
    ["our own end that is closed is unknown", [[peer, { ...ours, state: CLOSED }]], ME, "unknown"],
    ["an other end that only connects is unknown", [[{ ...peer, state: SYN_SENT }, ours]], ME, "unknown"],
    ["our own end that is gone at the second look is unknown", [[peer, ours], [peer]], ME, "unknown"],
    [
      "our own end that has another inode at the second look is unknown",
      [
        [peer, ours],
        [peer, { ...ours, inode: ours.inode + 1 }],
      ],
      ME,
      "unknown",
    ],
    ["a list that lacks our own end once is read again", [[peer], [peer, ours]], ME, "own"],
  ];
  for (const [name, lists, uid, expected] of table) {
    it(name, async () => {
      assert.equal(await new PortGuard(owners(lists, uid)).ownerOf(accepted), expected);
    });
  }

  it("finds an IPv4 connection of an IPv6 socket in the second table", async () => {
    const asked: string[] = [];
    const read: SocketOwners["read"] = async (asking) => {
      asked.push(asking);
      return asking === "tcp6" ? [peer] : [ours];
    };
    assert.equal(await new PortGuard({ uid: ME, read }).ownerOf(accepted), "own");
    assert.deepEqual(asked, ["tcp", "tcp6", "tcp"]);
  });

  it("is unknown where there is no list", async () => {
    const guard = new PortGuard({ uid: ME, read: () => Promise.reject(new Error("no /proc")) });
    assert.equal(await guard.ownerOf(accepted), "unknown");
  });

  it("looks once per connection", async () => {
    let reads = 0;
    const read = async (): Promise<readonly SocketRecord[]> => {
      reads += 1;
      return [peer, ours];
    };
    const guard = new PortGuard({ uid: ME, read });
    await Promise.all([guard.ownerOf(accepted), guard.ownerOf(accepted)]);
    await guard.ownerOf(accepted);
    assert.equal(reads, 2, "the list, and a second one to see that the socket is still connected");
  });

  it("is unknown for a connection that is closed", async () => {
    assert.equal(await new PortGuard(systemSocketOwners).ownerOf(new Socket().destroy()), "unknown");
  });
});

describe("SocketSnapshots", () => {
  it("answers all who ask while a list is read with one that is read afterwards", async () => {
    const reads = [Promise.withResolvers<SocketRecord[]>(), Promise.withResolvers<SocketRecord[]>()];
    let begun = 0;
    const snapshots = new SocketSnapshots({
      read: () => reads[begun++]?.promise ?? Promise.reject(new Error("third")),
    });
    const first = snapshots.read("tcp", 1);
    await Promise.resolve();
    const later = [snapshots.read("tcp", 1), snapshots.read("tcp", 1)];
    reads[0]?.resolve([]);
    assert.deepEqual(await first, []);
    reads[1]?.resolve([peer]);
    assert.deepEqual(await Promise.all(later), [[peer], [peer]]);
    assert.equal(begun, 2);
  });

  it("reads again after a list that could not be read", async () => {
    let begun = 0;
    const read = async (): Promise<SocketRecord[]> => {
      begun += 1;
      if (begun === 1) throw new Error("no /proc");
      return [ours];
    };
    const snapshots = new SocketSnapshots({ read });
    await assert.rejects(snapshots.read("tcp", 1));
    assert.deepEqual(await snapshots.read("tcp", 1), [ours]);
  });
});

describe("PortGuard.works", () => {
  it("is true on this system, where its own connection is listed", async () => {
    assert.equal(await new PortGuard(systemSocketOwners).works(), true);
  });

  it("is false where the own connection is not listed, or there are no user ids", async () => {
    assert.equal(await new PortGuard(owners([[]])).works(), false);
    const noUid = { uid: undefined, read: () => Promise.resolve([]) };
    assert.equal(await new PortGuard(noUid).works(), false);
  });

  it("is false where every socket belongs to another user", async () => {
    const read: SocketOwners["read"] = async (table, port) =>
      (await systemSocketOwners.read(table, port)).map((entry) => ({ ...entry, uid: 4711 }));
    assert.equal(await new PortGuard({ uid: ME, read }).works(), false);
  });
});
