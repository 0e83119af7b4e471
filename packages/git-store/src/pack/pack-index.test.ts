import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "node:zlib";
import type { ObjectFormat } from "@devplat/git-protocol";
import fc from "fast-check";
import { buildRepository, git, temporaryFolder } from "../../test/git.test-kit.ts";
import { blobOid, PackBuilder, simpleDelta } from "../../test/pack-builder.test-kit.ts";
import { GitStoreError } from "../errors.ts";
import { createTables } from "../index-pack/tables.ts";
import { indexPack } from "../index-pack/index-pack.ts";
import { sortByOid } from "../index-pack/sort.ts";
import { writeIndex, writeReverseIndex } from "../index-pack/write-index.ts";
import { ObjectDatabase } from "../object-database.ts";
import { oidBytes } from "../object-format.ts";
import { PackIndex } from "./pack-index.ts";
import { PackOrder } from "./pack-order.ts";

/** Ids that share first bytes now and then, offsets that pass 2^31 and 2^32. */
const entries = fc
  .uniqueArray(fc.tuple(fc.nat(3), fc.uint8Array({ minLength: 31, maxLength: 31 })), {
    minLength: 1,
    maxLength: 60,
    selector: ([first, rest]) => `${first} ${Buffer.from(rest.subarray(0, 19)).toString("hex")}`,
  })
  .chain((ids) =>
    fc.tuple(
      fc.constant(ids.map(([first, rest]) => Buffer.from([first * 85, ...rest]))),
      fc.array(fc.integer({ min: 9, max: 2 ** 31 }), { minLength: ids.length, maxLength: ids.length }),
    ),
  );

for (const format of ["sha1", "sha256"] satisfies ObjectFormat[]) {
  test(`PackIndex and PackOrder read any written ids and offsets (${format})`, () => {
    using folder = temporaryFolder();
    const length = oidBytes(format);
    let run = 0;
    fc.assert(
      fc.property(entries, ([ids, sizes]) => {
        const tables = createTables(format, ids.length);
        let offset = 12;
        for (const [entry, id] of ids.entries()) {
          tables.offsets[entry] = offset;
          tables.oids.set(id.subarray(0, length), entry * length);
          tables.crcs[entry] = (entry * 0x9e3779b1) >>> 0;
          offset += sizes[entry]!;
        }
        tables.offsets[ids.length] = offset;
        const path = join(folder.path, String(run++));
        const order = sortByOid(tables);
        writeIndex(`${path}.idx`, tables, order, Buffer.alloc(length, 7));
        writeReverseIndex(`${path}.rev`, tables, order, Buffer.alloc(length, 7));
        const index = PackIndex.read(`${path}.idx`, format);
        assert.equal(index.count, ids.length);
        assert.ok(index.packChecksum.every((byte) => byte === 7));
        for (const [entry, id] of ids.entries()) {
          const position = index.find(Buffer.concat([Buffer.from("xx"), id]), 2);
          assert.equal(index.oidAt(position), id.toString("hex", 0, length));
          assert.equal(index.offsetAt(position), tables.offsets[entry]);
          assert.equal(index.crcAt(position), tables.crcs[entry]);
          const absent = Buffer.from(id);
          absent[length - 1]! ^= 1;
          if (!ids.some((other) => other.subarray(0, length).equals(absent.subarray(0, length)))) {
            assert.equal(index.find(absent), -1);
          }
        }
        const packBytes = offset + length;
        const fromFile = PackOrder.read(`${path}.rev`, index, packBytes);
        const sorted = PackOrder.read(`${path}.none`, index, packBytes);
        assert.deepEqual(fromFile, sorted);
        for (const [entry] of ids.entries()) {
          assert.equal(fromFile.positionAt(tables.offsets[entry]!), entry);
          assert.equal(fromFile.positionAt(tables.offsets[entry]! + 1), -1);
          assert.equal(fromFile.packPositions[fromFile.indexPositions[entry]!], entry);
        }
      }),
      { numRuns: 40 },
    );
  });
}

test("PackIndex.range gives the ids of a prefix", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path);
  const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".idx"))!;
  const index = PackIndex.read(join(path, "objects/pack", name), "sha1");
  const all = Array.from({ length: index.count }, (_, position) => index.oidAt(position));
  for (const prefix of ["00", "7f", "ff", all[3]!, all[5]!.slice(0, 5)]) {
    const { first, end } = index.range(prefix);
    assert.deepEqual(
      all.slice(first, end),
      all.filter((oid) => oid.startsWith(prefix)),
      prefix,
    );
  }
});

/** An index of ids at made-up offsets, in the order of the pack. */
function madeIndex(
  folder: string,
  objects: readonly (readonly [oid: string, offset: number, crc?: number])[],
): Buffer {
  const tables = createTables("sha1", objects.length);
  for (const [entry, [oid, offset, crc = 0]] of objects.entries()) {
    tables.oids.set(Buffer.from(oid, "hex"), entry * 20);
    tables.offsets[entry] = offset;
    tables.crcs[entry] = crc;
  }
  const path = join(folder, "made.idx");
  rmSync(path, { force: true });
  writeIndex(path, tables, sortByOid(tables), Buffer.alloc(20, 7));
  return readFileSync(path);
}

const SMALL_TABLES = 8 + 1024;

test("writeIndex puts offsets of 2^31 and more in the table of 64-bit offsets, by id", () => {
  using folder = temporaryFolder();
  const offsets = [12, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 40 + 5];
  const ids = offsets.map((_, entry) => String(9 - entry).repeat(40));
  const bytes = madeIndex(
    folder.path,
    ids.map((oid, entry) => [oid, offsets[entry]!] as const),
  );
  const index = new PackIndex(bytes, "sha1", "made.idx");
  for (const [entry, oid] of ids.entries()) {
    const position = index.find(Buffer.from(oid, "hex"));
    assert.equal(position, offsets.length - 1 - entry);
    assert.equal(index.offsetAt(position), offsets[entry]);
    assert.equal(bytes.toString("hex", index.oidStartAt(position), index.oidStartAt(position) + 20), oid);
  }
  const small = SMALL_TABLES + offsets.length * 24;
  const words = Array.from(offsets, (_, position) => bytes.readUInt32BE(small + position * 4));
  assert.deepEqual(words, [2 ** 31, 2 ** 31 + 1, 2 ** 31 + 2, 2 ** 31 + 3, 2 ** 31 - 1, 12]);
  const large = Array.from({ length: 4 }, (_, n) =>
    Number(bytes.readBigUInt64BE(small + offsets.length * 4 + n * 8)),
  );
  assert.deepEqual(large, [2 ** 40 + 5, 2 ** 32, 2 ** 32 - 1, 2 ** 31]);
  assert.deepEqual(index.checksum, createHash("sha1").update(index.content).digest());
});

test("an object behind 4 GiB of a pack is read, as stock git reads it", () => {
  using folder = temporaryFolder();
  const repository = join(folder.path, "far.git");
  git(folder.path, ["init", "-q", "--bare", repository]);
  const contents = ["near", "far"].map((text) => Buffer.from(text));
  const offsets = [12, 2 ** 32 + 12];
  const packs = join(repository, "objects/pack");
  const crcs: number[] = [];
  // All between the two is a hole, which takes no room and belongs to the first one.
  const pack = openSync(join(packs, "pack-far.pack"), "w");
  for (const [entry, content] of contents.entries()) {
    const builder = new PackBuilder();
    builder.object("blob", content);
    const whole = builder.finish(contents.length);
    crcs.push(crc32(whole.subarray(12, -20)));
    writeSync(pack, whole, 0, whole.length, offsets[entry]! - 12);
  }
  const { size } = fstatSync(pack);
  const trailer = Buffer.alloc(20, 7);
  writeSync(pack, trailer, 0, trailer.length, size - 20);
  closeSync(pack);
  const oids = contents.map((content) => blobOid(content));
  writeFileSync(
    join(packs, "pack-far.idx"),
    madeIndex(
      folder.path,
      oids.map((oid, entry) => [oid, offsets[entry]!, crcs[entry]!] as const),
    ),
  );
  const database = ObjectDatabase.open(join(repository, "objects"));
  const far = oids[1]!;
  assert.deepEqual(database.read(far), { type: "blob", content: contents[1] });
  assert.deepEqual(git(repository, ["cat-file", "blob", far]), contents[1]);
  database.close();
});

test("PackIndex refuses what cannot be an index, and says why", () => {
  using folder = temporaryFolder();
  const good = madeIndex(folder.path, [["a".repeat(40), 12]]);
  assert.equal(new PackIndex(madeIndex(folder.path, []), "sha1", "empty.idx").count, 0);
  const changed = (at: number, value: number): Buffer => {
    const bytes = Buffer.from(good);
    bytes.writeUInt32BE(value, at);
    return bytes;
  };
  const longer = (bytes: number): Buffer => Buffer.concat([good, Buffer.alloc(bytes)]);
  const table: [Buffer, string][] = [
    [good.subarray(0, SMALL_TABLES + 39), "it is too short"],
    [changed(0, 0xff744f64), "it has no signature of an index"],
    [changed(4, 3), "version 3, not 2"],
    [changed(8, 2), "its fan-out decreases"],
    [good.subarray(0, -1), "its size does not fit its number of objects"],
    [longer(4), "its size does not fit its number of objects"],
    [longer(16), "its size does not fit its number of objects"],
  ];
  for (const [bytes, why] of table) {
    assert.throws(() => new PackIndex(bytes, "sha1", "x.idx"), {
      code: "corrupt_index",
      message: `Cannot read the index x.idx: ${why}`,
      details: { path: "x.idx" },
    });
  }
  assert.equal(new PackIndex(longer(8), "sha1", "x.idx").count, 1);
});

test("PackIndex: a 64-bit offset outside its table is corrupt_index", () => {
  using folder = temporaryFolder();
  const bytes = madeIndex(folder.path, [["a".repeat(40), 2 ** 31]]);
  for (const [number, isThere] of [
    [0, true],
    [1, false],
    [2, false],
  ] as const) {
    bytes.writeUInt32BE(2 ** 31 + number, SMALL_TABLES + 24);
    const index = new PackIndex(bytes, "sha1", "x.idx");
    if (isThere) assert.equal(index.offsetAt(0), 2 ** 31);
    else {
      assert.throws(() => index.offsetAt(0), {
        code: "corrupt_index",
        message: "Cannot read a pack index: a 64-bit offset outside its table",
      });
    }
  }
});

test("PackIndex.range holds the lowest and the highest id of a prefix", () => {
  using folder = temporaryFolder();
  const ids = [`aa${"f".repeat(38)}`, `ab${"0".repeat(38)}`, `ab${"f".repeat(38)}`, `ac${"0".repeat(38)}`];
  const bytes = madeIndex(
    folder.path,
    ids.map((oid, entry) => [oid, 12 + entry * 100] as const),
  );
  assert.deepEqual(new PackIndex(bytes, "sha1", "x.idx").range("ab"), { first: 1, end: 3 });
});

test("sortByOid sorts ids that all start alike, as a hostile pack's may", () => {
  const count = 500;
  const tables = createTables("sha1", count);
  for (let entry = 0; entry < count; entry++) {
    Buffer.from(tables.oids.buffer).writeUInt32BE((entry * 7919) % count, entry * 20 + 10);
  }
  const order = sortByOid(tables);
  assert.deepEqual(
    Array.from(order, (entry) => (entry * 7919) % count),
    Array.from({ length: count }, (_, i) => i),
  );
});

test("PackIndex of changed or cut bytes throws corrupt_index or returns", () => {
  using folder = temporaryFolder();
  const path = buildRepository(folder.path, "sha1", { commits: 5 });
  const name = readdirSync(join(path, "objects/pack")).find((file) => file.endsWith(".idx"))!;
  const good = readFileSync(join(path, "objects/pack", name));
  fc.assert(
    fc.property(fc.nat(good.length - 1), fc.nat(255), fc.boolean(), (at, value, cut) => {
      const bad = cut ? good.subarray(0, at) : Buffer.from(good);
      if (!cut) bad[at] = value;
      try {
        const index = new PackIndex(bad, "sha1", "x.idx");
        for (let position = 0; position < index.count; position++) {
          index.find(Buffer.from(index.oidAt(position), "hex"));
          index.offsetAt(position);
        }
        PackOrder.read(join(folder.path, "none"), index, 1_000_000);
      } catch (error) {
        assert.ok(error instanceof GitStoreError && error.code === "corrupt_index", String(error));
      }
    }),
    { numRuns: 300 },
  );
});

test("ObjectDatabase returns any set of blobs, indexed as objects or any kind of delta", async () => {
  using folder = temporaryFolder();
  const content = fc.uint8Array({ maxLength: 3000, size: "max" }).map((bytes) => Buffer.from(bytes));
  const blobs = fc.uniqueArray(
    fc.record({ content, how: fc.constantFrom("whole", "ofs", "ref"), base: fc.nat(50) }),
    {
      minLength: 1,
      maxLength: 15,
      selector: (blob) => blob.content.toString("latin1"),
    },
  );
  let run = 0;
  await fc.assert(
    fc.asyncProperty(blobs, async (list) => {
      const builder = new PackBuilder();
      const offsets: number[] = [];
      for (const [i, blob] of list.entries()) {
        const base = blob.base % Math.max(1, i);
        if (i === 0 || blob.how === "whole") offsets.push(builder.object("blob", blob.content));
        else {
          const delta = simpleDelta(list[base]!.content, blob.content);
          offsets.push(
            blob.how === "ofs"
              ? builder.ofsDelta(offsets[base]!, delta)
              : builder.refDelta(blobOid(list[base]!.content), delta),
          );
        }
      }
      const objects = join(folder.path, String(run++));
      mkdirSync(join(objects, "pack"), { recursive: true });
      async function* source(): AsyncGenerator<Buffer> {
        yield builder.finish();
      }
      await indexPack(source(), { folder: join(objects, "pack"), threads: 0 });
      const database = ObjectDatabase.open(objects);
      for (const blob of list) {
        const oid = blobOid(blob.content);
        assert.deepEqual(database.read(oid), { type: "blob", content: blob.content });
        assert.deepEqual(database.info(oid), { type: "blob", size: blob.content.length });
      }
      database.close();
    }),
    { numRuns: 25 },
  );
});
