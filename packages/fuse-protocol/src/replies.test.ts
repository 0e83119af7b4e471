import assert from "node:assert/strict";
import { constants } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  DirectoryWriter,
  FuseProtocolError,
  INIT_FLAGS,
  MAX_FUSE_MINOR,
  ReplyWriter,
  encodeDeleted,
  encodeInvalidEntry,
  encodeInvalidInode,
  negotiate,
  requestBufferBytes,
  type Entry,
  type FuseRequest,
} from "./index.ts";

const TIME = { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
const ENTRY: Entry = {
  nodeId: 0x1122_3344_5566_7788n,
  generation: 3n,
  nameValidMs: 1500,
  attributesValidMs: 250,
  attributes: {
    inode: 42n,
    size: 513,
    accessTime: TIME,
    modificationTime: { seconds: -2, nanoseconds: 5 },
    changeTime: TIME,
    mode: constants.S_IFREG | 0o400,
    links: 1,
    uid: 1000,
    gid: 1001,
    blockSize: 4096,
  },
};
/** `struct fuse_attr` of the entry, field by field. */
const ATTRIBUTES = [
  "2a00000000000000", // ino
  "0102000000000000", // size
  "0200000000000000", // blocks
  "00f1536500000000", // atime
  "feffffffffffffff", // mtime
  "00f1536500000000", // ctime
  "15cd5b07", // atimensec
  "05000000", // mtimensec
  "15cd5b07", // ctimensec
  "00810000", // mode
  "01000000", // nlink
  "e8030000", // uid
  "e9030000", // gid
  "00000000", // rdev
  "00100000", // blksize
  "00000000", // flags
].join("");
/** `struct fuse_entry_out`. */
const ENTRY_OUT = [
  "8877665544332211", // nodeid
  "0300000000000000", // generation
  "0100000000000000", // entry_valid
  "0000000000000000", // attr_valid
  "0065cd1d", // entry_valid_nsec
  "80b2e60e", // attr_valid_nsec
  ATTRIBUTES,
].join("");
const head = (length: number, error = "00000000"): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(length);
  return `${bytes.toString("hex")}${error}0900000000000000`;
};

describe("ReplyWriter", () => {
  const reply = new ReplyWriter();
  const table: [string, () => Buffer, string][] = [
    ["an error", () => reply.error(9n, 2), head(16, "feffffff")],
    ["success", () => reply.done(9n), head(16)],
    ["the header of data", () => reply.dataHeader(9n, 4096), head(16 + 4096)],
    ["an entry", () => reply.entry(9n, ENTRY), head(16 + 128) + ENTRY_OUT],
    ["a missing name", () => reply.missing(9n, 1000), `${head(144)}${"00".repeat(16)}01${"00".repeat(111)}`],
    [
      "attributes",
      () => reply.attributes(9n, ENTRY.attributes, 2000),
      `${head(16 + 104)}02000000000000000000000000000000${ATTRIBUTES}`,
    ],
    ["an open file", () => reply.opened(9n, 5n, 1), `${head(32)}05000000000000000100000000000000`],
    [
      "a created file",
      () => reply.created(9n, ENTRY, 5n, 2),
      `${head(160)}${ENTRY_OUT}05000000000000000200000000000000`,
    ],
    ["a written length", () => reply.written(9n, 0x1_0000), `${head(24)}0000010000000000`],
    ["the size of an attribute", () => reply.extendedAttributeSize(9n, 3), `${head(24)}0300000000000000`],
    ["an offset beyond 4 GiB", () => reply.offset(9n, 2 ** 33 + 1), `${head(24)}0100000002000000`],
    [
      "a lock",
      () => reply.lock(9n, { start: 1n, end: 2n, type: 2, pid: 3 }),
      `${head(40)}010000000000000002000000000000000200000003000000`,
    ],
    [
      "the size of the filesystem",
      () =>
        reply.statfs(9n, {
          blockSize: 4096,
          blocks: 8,
          freeBlocks: 7,
          files: 6,
          freeFiles: 5,
          maxNameBytes: 255,
        }),
      `${head(96)}${[8, 7, 7, 6, 5].map((n) => `0${n}${"00".repeat(7)}`).join("")}00100000ff00000000100000${"00".repeat(28)}`,
    ],
  ];
  for (const [what, write, hex] of table) {
    it(`writes ${what} as in linux/fuse.h`, () => {
      reply.entry(1n, ENTRY);
      assert.equal(write().toString("hex"), hex);
    });
  }
});

const INIT: Extract<FuseRequest, { operation: "init" }> = {
  header: { unique: 2n, nodeId: 0n, uid: 0, gid: 0, pid: 0 },
  operation: "init",
  major: 7,
  minor: 45,
  maxReadahead: 131_072,
  flags: 0xffff_ffff,
};

describe("negotiate", () => {
  it("takes the lower minor version, and features that both sides have", () => {
    const wanted = { flags: INIT_FLAGS.asyncRead | INIT_FLAGS.bigWrites, maxWriteBytes: 131_072 };
    const connection = negotiate(INIT, wanted);
    assert.equal(connection.minor, MAX_FUSE_MINOR);
    assert.equal(connection.flags, wanted.flags);
    assert.equal(negotiate({ ...INIT, minor: 33, flags: INIT_FLAGS.bigWrites }, wanted).minor, 33);
    assert.equal(negotiate({ ...INIT, flags: INIT_FLAGS.bigWrites }, wanted).flags, INIT_FLAGS.bigWrites);
    assert.equal(
      new ReplyWriter().init(9n, connection).toString("hex"),
      `${head(80)}070000002600000000000200210000000c00090000000200010000002000${"00".repeat(34)}`,
    );
  });

  it("never agrees on a feature that changes the layout of messages", () => {
    assert.equal(negotiate(INIT, { flags: 2 ** 31 - 1, maxWriteBytes: 4096 }).flags & (1 << 29), 0);
  });

  it("writes more than 128 KiB only with a kernel that counts pages", () => {
    const wanted = { flags: 0, maxWriteBytes: 1_048_576 };
    assert.equal(negotiate(INIT, wanted).maxPages, 256);
    assert.equal(negotiate(INIT, wanted).flags, INIT_FLAGS.maxPages);
    assert.equal(negotiate({ ...INIT, flags: 0 }, wanted).maxWriteBytes, 131_072);
    assert.ok(requestBufferBytes(4096) >= 8192);
    assert.ok(requestBufferBytes(1_048_576) > 1_048_576);
  });

  it("refuses another major version and old kernels", () => {
    for (const version of [
      { major: 8, minor: 0 },
      { major: 6, minor: 40 },
      { major: 7, minor: 30 },
    ]) {
      assert.throws(
        () => negotiate({ ...INIT, ...version }, { flags: 0, maxWriteBytes: 4096 }),
        (error) => error instanceof FuseProtocolError && error.code === "unsupported_version",
      );
    }
  });
});

describe("DirectoryWriter", () => {
  it("writes entries with and without attributes as in linux/fuse.h", () => {
    const writer = new DirectoryWriter();
    const dirent = "2a0000000000000007000000000000000300000008000000c3a96100".padEnd(64, "0");
    const entry = { name: "éa", inode: 42n, mode: constants.S_IFREG | 0o400, nextOffset: 7 };
    writer.begin(9n, 4096);
    assert.equal(writer.add(entry), true);
    assert.equal(writer.finish().toString("hex"), head(48) + dirent);
    writer.begin(9n, 4096);
    assert.equal(writer.addPlus(entry, ENTRY), true);
    assert.equal(writer.addPlus({ ...entry, name: Buffer.from("éa") }, undefined), true);
    assert.equal(
      writer.finish().toString("hex"),
      head(16 + 320) + ENTRY_OUT + dirent + "00".repeat(128) + dirent,
    );
  });

  it("fills up to the size, and says which entry did not fit", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ minLength: 1, maxLength: 80 }), { maxLength: 60 }),
        fc.nat(4096),
        fc.boolean(),
        (names, size, plus) => {
          const writer = new DirectoryWriter();
          writer.begin(1n, size);
          const add = (name: string): boolean => {
            const entry = { name, inode: 1n, mode: constants.S_IFDIR, nextOffset: 1 };
            return plus ? writer.addPlus(entry, ENTRY) : writer.add(entry);
          };
          const fitted = names.findIndex((name) => !add(name));
          const lengths = names.map(
            (name) => Math.ceil((24 + (plus ? 128 : 0) + Buffer.byteLength(name)) / 8) * 8,
          );
          const count = fitted === -1 ? names.length : fitted;
          const used = lengths.slice(0, count).reduce((sum, length) => sum + length, 0);
          const reply = writer.finish();
          assert.equal(reply.length, 16 + used);
          assert.equal(reply.readUInt32LE(), reply.length);
          assert.ok(used <= size && (fitted === -1 || used + lengths[fitted]! > size));
        },
      ),
    );
  });
});

describe("notifications", () => {
  it("are written as in linux/fuse.h", () => {
    const start = (length: number, code: number): string => {
      const bytes = Buffer.alloc(16);
      bytes.writeUInt32LE(length);
      bytes.writeInt32LE(code, 4);
      return bytes.toString("hex");
    };
    assert.equal(
      encodeInvalidInode(5n, -1n).toString("hex"),
      `${start(40, 2)}0500000000000000ffffffffffffffff0000000000000000`,
    );
    assert.equal(
      encodeInvalidEntry(5n, "ab").toString("hex"),
      `${start(35, 3)}05000000000000000200000000000000616200`,
    );
    assert.equal(
      encodeInvalidEntry(5n, Buffer.from("ab"), true).toString("hex"),
      `${start(35, 3)}05000000000000000200000001000000616200`,
    );
    assert.equal(
      encodeDeleted(5n, 6n, "a").toString("hex"),
      `${start(42, 6)}0500000000000000060000000000000001000000000000006100`,
    );
  });
});
