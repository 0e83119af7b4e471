import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deflateSync } from "node:zlib";
import { randomFrom } from "@devplat/testkit/random";
import { temporaryFolder, tryGit } from "../../test/git.test-kit.ts";
import {
  blobOid,
  encodeDelta,
  entryHeader,
  noiseOf,
  PackBuilder,
  reseal,
  simpleDelta,
} from "../../test/pack-builder.test-kit.ts";
import { GitStoreError, type GitStoreErrorCode } from "../errors.ts";
import { ObjectDatabase } from "../object-database.ts";
import { encodePackHeader } from "../pack/pack-entry.ts";
import { indexPack, type IndexedPack } from "./index-pack.ts";
import type { IndexPackLimits } from "./limits.ts";

/** The same for the same `TEST_SEED`, which is printed where a test uses it. */
const SEED = Number(process.env["TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

async function indexInto(
  folder: string,
  bytes: Buffer,
  limits: Partial<IndexPackLimits> = {},
): Promise<IndexedPack> {
  async function* source(): AsyncGenerator<Buffer> {
    yield bytes;
  }
  return indexPack(source(), { folder, threads: 0, limits });
}

const A = Buffer.from("the quick brown fox jumps over the lazy dog\n".repeat(3));
const B = Buffer.concat([A, Buffer.from("and back\n")]);

function build(fill: (builder: PackBuilder) => void): Buffer {
  const builder = new PackBuilder();
  fill(builder);
  return builder.finish();
}

const good = build((pack) => {
  const base = pack.object("blob", A);
  pack.ofsDelta(base, simpleDelta(A, B));
});

const zlib = (content: Buffer | string): Buffer => deflateSync(content);

/** Deltas on deltas, each a hundred times its base: 100 bytes grow to 10^10 in four steps, to what you like in more. */
function bomb(): Buffer {
  return build((pack) => {
    let size = 1000;
    let base = pack.object("blob", Buffer.alloc(size));
    for (let step = 0; step < 5; step++) {
      const copies = Array.from({ length: 16 }, () => ({ copy: [0, size] as const }));
      base = pack.ofsDelta(base, encodeDelta(size, size * 16, copies));
      size *= 16;
    }
  });
}

const CASES: [name: string, code: GitStoreErrorCode, pack: Buffer, limits?: Partial<IndexPackLimits>][] = [
  ["no bytes at all", "truncated", Buffer.alloc(0)],
  ["a web page", "not_a_pack", Buffer.from("<!doctype html><title>502 Bad Gateway</title>")],
  ["version 3", "not_a_pack", reseal(Buffer.concat([Buffer.from("PACK\0\0\0\u0003"), good.subarray(8)]))],
  ["type 0", "bad_entry", build((pack) => pack.raw(Buffer.concat([entryHeader(0, 1), zlib("x")])))],
  ["type 5", "bad_entry", build((pack) => pack.raw(Buffer.concat([entryHeader(5, 1), zlib("x")])))],
  ["a size of 80 bits", "bad_entry", build((pack) => pack.raw(Buffer.alloc(30, 0xbf)))],
  [
    "bytes that are not a zlib stream",
    "corrupt_zlib",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 9), Buffer.alloc(40, 0x41)]))),
  ],
  [
    "a zlib stream with a wrong check value",
    "corrupt_zlib",
    build((pack) => {
      const packed = zlib("content");
      packed[packed.length - 1]! ^= 1;
      pack.raw(Buffer.concat([entryHeader(3, 7), packed]));
    }),
  ],
  [
    "a zlib stream that asks for a dictionary",
    "corrupt_zlib",
    build((pack) => {
      pack.raw(Buffer.concat([entryHeader(3, 3), deflateSync("abc", { dictionary: Buffer.from("abcabc") })]));
    }),
  ],
  [
    "more bytes than the header says",
    "wrong_size",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 6), zlib("content")]))),
  ],
  [
    "fewer bytes than the header says",
    "wrong_size",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 8), zlib("content")]))),
  ],
  [
    "more bytes than the header of a large object says",
    "wrong_size",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 2_000_000), zlib(Buffer.alloc(2_000_001))]))),
  ],
  [
    "fewer bytes than the header of a large object says",
    "wrong_size",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 2_000_001), zlib(Buffer.alloc(2_000_000))]))),
  ],
  [
    "a large object that continues after its size",
    "wrong_size",
    build((pack) => {
      const packed = zlib(noiseOf(1_600_000));
      packed.fill(0xff, packed.length - 1000);
      pack.raw(Buffer.concat([entryHeader(3, 1_100_000), packed]));
    }),
  ],
  [
    "a large object that is not a zlib stream",
    "corrupt_zlib",
    build((pack) => pack.raw(Buffer.concat([entryHeader(3, 2_000_001), Buffer.alloc(50, 0x41)]))),
  ],
  [
    "a large object that is cut",
    "truncated",
    Buffer.concat([
      encodePackHeader(1),
      entryHeader(3, 2_000_000),
      zlib(Buffer.alloc(2_000_000)).subarray(0, 500),
    ]),
  ],
  [
    "a delta that copies from outside its base",
    "delta_out_of_base",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base, encodeDelta(A.length, 10, [{ copy: [A.length - 5, 10] }]));
    }),
  ],
  [
    "a delta for a base of another size",
    "delta_out_of_base",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base, encodeDelta(A.length + 1, 10, [{ copy: [0, 10] }]));
    }),
  ],
  [
    "a delta that gives less than it says",
    "corrupt_delta",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base, encodeDelta(A.length, 11, [{ copy: [0, 10] }]));
    }),
  ],
  [
    "a delta without instructions for a huge result",
    "corrupt_delta",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base, encodeDelta(A.length, 300_000_000, []));
    }),
  ],
  [
    "a delta with opcode 0",
    "corrupt_delta",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base, Buffer.concat([encodeDelta(A.length, 1, []), Buffer.from([0])]));
    }),
  ],
  [
    "an empty delta",
    "corrupt_delta",
    build((pack) => pack.ofsDelta(pack.object("blob", A), Buffer.alloc(0))),
  ],
  ["deltas that grow beyond the limit", "delta_bomb", bomb(), { expandedBytes: 50_000_000 }],
  [
    "a delta whose result is larger than an object may be",
    "too_large",
    bomb(),
    { deltaObjectBytes: 100_000_000 },
  ],
  [
    "a delta that is its own base",
    "delta_cycle",
    build((pack) => {
      pack.object("blob", A);
      pack.ofsDelta(pack.offset, simpleDelta(A, B));
    }),
  ],
  [
    "two deltas that are each other's base",
    "missing_base",
    build((pack) => {
      pack.refDelta(blobOid(B), simpleDelta(B, A));
      pack.refDelta(blobOid(A), simpleDelta(A, B));
    }),
  ],
  [
    "a delta whose base starts within another entry",
    "missing_base",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.ofsDelta(base + 1, simpleDelta(A, B));
    }),
  ],
  [
    "a delta whose base starts before the pack",
    "missing_base",
    build((pack) => {
      pack.object("blob", A);
      pack.ofsDelta(-5, simpleDelta(A, B));
    }),
  ],
  [
    "a delta whose base is nowhere",
    "missing_base",
    build((pack) => pack.refDelta("1".repeat(40), simpleDelta(A, B))),
  ],
  [
    "one object twice",
    "duplicate_object",
    build((pack) => {
      pack.object("blob", A);
      pack.object("blob", A, 1);
    }),
  ],
  [
    "one object undeltified and as a delta",
    "duplicate_object",
    build((pack) => {
      const base = pack.object("blob", A);
      pack.object("blob", B);
      pack.ofsDelta(base, simpleDelta(A, B));
    }),
  ],
  ["bytes after its trailer", "trailing_garbage", Buffer.concat([good, Buffer.from("x")])],
  [
    "a wrong trailer",
    "wrong_trailer",
    Buffer.concat([good.subarray(0, -1), Buffer.from([good.at(-1)! ^ 1])]),
  ],
  [
    "fewer objects than it holds",
    "wrong_trailer",
    reseal(Buffer.concat([encodePackHeader(1), good.subarray(12)])),
  ],
  [
    "more objects than it holds",
    "corrupt_zlib",
    reseal(Buffer.concat([encodePackHeader(3), good.subarray(12)])),
  ],
  [
    "four billion objects",
    "too_large",
    reseal(Buffer.concat([encodePackHeader(0xffff_ffff), good.subarray(12)])),
  ],
  ["its end missing", "truncated", good.subarray(0, -30)],
  ["its trailer cut", "truncated", good.subarray(0, -1)],
  ["only its header", "truncated", good.subarray(0, 12)],
  ["an object above the limit", "too_large", good, { objectBytes: 10 }],
  ["more bytes than the limit", "too_large", good, { packBytes: good.length - 1 }],
  ["more objects than the limit", "too_large", good, { objects: 1 }],
  ["objects that inflate to more than the limit", "too_large", good, { expandedBytes: 100 }],
];

for (const [name, code, pack, limits] of CASES) {
  test(`indexPack of a pack with ${name} throws ${code} and stores nothing`, async () => {
    using folder = temporaryFolder();
    await assert.rejects(indexInto(folder.path, pack, limits), (error: unknown) => {
      assert.ok(error instanceof GitStoreError, String(error));
      assert.equal(error.code, code, error.message);
      return true;
    });
    assert.deepEqual(readdirSync(folder.path), []);
  });
}

test("indexPack of an ofs-delta names the entry's offset in its error", async () => {
  using folder = temporaryFolder();
  let offset = 0;
  const pack = build((builder) => {
    const base = builder.object("blob", A);
    offset = builder.ofsDelta(base, encodeDelta(A.length, 10, [{ copy: [A.length, 10] }]));
  });
  await assert.rejects(indexInto(folder.path, pack), { details: { offset } });
});

test("indexPack accepts a pack whose limits are just met", async () => {
  using folder = temporaryFolder();
  const limits = { packBytes: good.length, objects: 2, objectBytes: A.length, deltaObjectBytes: B.length };
  assert.equal((await indexInto(folder.path, good, limits)).objects, 2);
});

test("indexPack of 6,000 chained deltas, and reading the last, need little stack", async () => {
  using folder = temporaryFolder();
  const packs = join(folder.path, "pack");
  mkdirSync(packs);
  const pack = build((builder) => {
    let content = Buffer.from("0");
    let base = builder.object("blob", content);
    for (let i = 1; i < 6000; i++) {
      const next = Buffer.from(String(i));
      base = builder.ofsDelta(base, encodeDelta(content.length, next.length, [{ insert: next }]));
      content = next;
    }
  });
  assert.equal((await indexInto(packs, pack)).objects, 6000);
  const database = ObjectDatabase.open(folder.path);
  assert.equal(database.read(blobOid("5999")).content.toString(), "5999");
  assert.deepEqual(database.info(blobOid("5998")), { type: "blob", size: 4 });
  database.close();
});

// The trailer is made right again after each flip, so that the damage gets as far as the entries. Without --strict: a flip can
// make a blob into a commit that cannot be read, and what objects say is judged by those who walk them.
test(`indexPack of a pack with flipped bits agrees with git index-pack (seed ${SEED})`, async () => {
  using folder = temporaryFolder();
  const random = randomFrom(SEED);
  const store = join(folder.path, "store");
  mkdirSync(store);
  const original = build((pack) => {
    const tree = pack.object("blob", A);
    const second = pack.ofsDelta(tree, simpleDelta(A, B));
    pack.ofsDelta(second, simpleDelta(B, Buffer.concat([B, A])));
    pack.refDelta(blobOid(B), simpleDelta(B, Buffer.from("short")));
    pack.object("blob", "another blob that is not a delta");
  });
  let accepted = 0;
  let refused = 0;
  for (let run = 0; run < 60; run++) {
    const bad = Buffer.from(original);
    for (let flips = 1 + Math.floor(random() * 2); flips > 0; flips--) {
      const bit = Math.floor((12 + random() * (bad.length - 32)) * 8);
      bad[bit >> 3]! ^= 1 << (bit & 7);
    }
    const pack = reseal(bad);
    const file = join(folder.path, `bad-${run}.pack`);
    writeFileSync(file, pack);
    const theirs = tryGit(folder.path, ["index-pack", file]);
    let ours: IndexedPack | undefined;
    try {
      ours = await indexInto(store, pack);
    } catch (error) {
      assert.ok(error instanceof GitStoreError, `run ${run}: ${String(error)}`);
    }
    assert.equal(ours !== undefined, theirs.status === 0, `run ${run}: git says ${theirs.stderr}`);
    if (ours === undefined) {
      refused++;
    } else {
      accepted++;
      const idx = readFileSync(ours.packPath.replace(/pack$/u, "idx"));
      assert.ok(idx.equals(readFileSync(file.replace(/pack$/u, "idx"))), `run ${run}: other indexes`);
    }
  }
  assert.ok(refused > 20, `${accepted} accepted, ${refused} refused`);
});

test("indexPack of a real pack cut at any place throws, and stores nothing", async () => {
  using folder = temporaryFolder();
  for (let length = 0; length < good.length; length++) {
    await assert.rejects(indexInto(folder.path, good.subarray(0, length)), GitStoreError);
  }
  assert.deepEqual(readdirSync(folder.path), []);
});
