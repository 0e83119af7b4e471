import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ObjectFormat } from "@devplat/git-protocol";
import fc from "fast-check";
import { buildRepository, temporaryFolder } from "../test/git.test-kit.ts";
import { blobOid, PackBuilder, simpleDelta } from "../test/pack-builder.test-kit.ts";
import { GitStoreError } from "./errors.ts";
import { createTables } from "./index-pack/tables.ts";
import { indexPack } from "./index-pack/index-pack.ts";
import { sortByOid } from "./index-pack/sort.ts";
import { writeIndex, writeReverseIndex } from "./index-pack/write-index.ts";
import { ObjectDatabase } from "./object-database.ts";
import { oidBytes } from "./object-format.ts";
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
  test(`PackIndex and PackOrder read back what was written, for any ids and offsets (${format})`, () => {
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

test("PackIndex of any bytes changed or cut throws corrupt_index, or answers without a hang", () => {
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

test("indexPack and ObjectDatabase give back any set of blobs, whole or as deltas of any kind", async () => {
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
