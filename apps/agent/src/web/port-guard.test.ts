import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, describe, it } from "node:test";
import { PortGuard, systemSocketOwners, type SocketOwners } from "./port-guard.ts";
import { endpoint, type SocketRecord } from "./socket-table.ts";

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

const local = endpoint(accepted.remoteAddress, accepted.remotePort) ?? "";
const remote = endpoint(accepted.localAddress, accepted.localPort) ?? "";
const record: SocketRecord = { local, remote, listening: false, uid: ME, inode: 7 };

function owners(records: readonly SocketRecord[], uid: number | undefined = ME): SocketOwners {
  return { uid, read: async () => records };
}

describe("PortGuard.ownerOf", () => {
  const table: [string, readonly SocketRecord[], number, string][] = [
    ["a record with our uid is our own", [record], ME, "own"],
    ["a record with another uid is another user's", [{ ...record, uid: 1001 }], ME, "other"],
    ["root is another user for a daemon that is not root's", [{ ...record, uid: 0 }], ME, "other"],
    ["root's open socket is root's own", [{ ...record, uid: 0 }], 0, "own"],
    [
      "a closed socket shows uid 0 and does not pass for root",
      [{ ...record, uid: 0, inode: 0 }],
      0,
      "unknown",
    ],
    ["no record is unknown", [], ME, "unknown"],
    ["another port does not count", [{ ...record, local: `${local}1` }], ME, "unknown"],
    [
      "the same port on another loopback address does not count",
      [{ ...record, local: local.replace("7f000001", "7f000002") }],
      ME,
      "unknown",
    ],
    [
      "our own end of the connection does not count",
      [{ ...record, local: remote, remote: local }],
      ME,
      "unknown",
    ],
    ["two records of different users are not our own", [record, { ...record, uid: 1001 }], ME, "other"],
  ];
  for (const [name, records, uid, expected] of table) {
    it(name, async () => {
      assert.equal(await new PortGuard(owners(records, uid)).ownerOf(accepted), expected);
    });
  }

  it("finds an IPv4 connection of an IPv6 socket in the second table", async () => {
    const asked: string[] = [];
    const read: SocketOwners["read"] = async (asking) => {
      asked.push(asking);
      return asking === "tcp6" ? [record] : [];
    };
    assert.equal(await new PortGuard({ uid: ME, read }).ownerOf(accepted), "own");
    assert.deepEqual(asked, ["tcp", "tcp6"]);
  });

  it("is unknown where there is no list", async () => {
    const guard = new PortGuard({ uid: ME, read: () => Promise.reject(new Error("no /proc")) });
    assert.equal(await guard.ownerOf(accepted), "unknown");
  });

  it("asks once per connection", async () => {
    let asked = 0;
    const read = async (): Promise<readonly SocketRecord[]> => [{ ...record, inode: ++asked }];
    const guard = new PortGuard({ uid: ME, read });
    await Promise.all([guard.ownerOf(accepted), guard.ownerOf(accepted)]);
    await guard.ownerOf(accepted);
    assert.equal(asked, 1);
  });
});

describe("PortGuard.works", () => {
  it("is true on this system, where its own connection is listed", async () => {
    assert.equal(await new PortGuard().works(), true);
  });

  it("is false where the own connection is not listed, or there are no user ids", async () => {
    assert.equal(await new PortGuard(owners([])).works(), false);
    const noUid = { uid: undefined, read: () => Promise.resolve([]) };
    assert.equal(await new PortGuard(noUid).works(), false);
  });

  it("is false where every socket shows as somebody else's", async () => {
    const read: SocketOwners["read"] = async (table, localPort) =>
      (await systemSocketOwners.read(table, localPort)).map((entry) => ({ ...entry, uid: 4711 }));
    assert.equal(await new PortGuard({ uid: ME, read }).works(), false);
  });
});
