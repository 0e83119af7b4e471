import assert from "node:assert/strict";
import { hash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { loopSeconds, tempFolder, testSeed, type TempFolder } from "@devplat/testkit";
import { SLICE_BYTES } from "../manifest/manifest.ts";
import { digestFile } from "./digest-thread.ts";
import { DIGEST_BYTES, ObjectDigestBuilder, sliceCount, storedObject } from "./object-digest.ts";
import { SliceList } from "./slice-list.ts";

/** The same by another way: each slice by a hash of its own. */
function expected(bytes: Buffer) {
  const slices = Array.from({ length: sliceCount(bytes.length) }, (_, index) =>
    hash("sha256", bytes.subarray(index * SLICE_BYTES, (index + 1) * SLICE_BYTES), "buffer"),
  );
  return {
    length: bytes.length,
    sha256: hash("sha256", bytes),
    slices: slices.length === 1 ? undefined : Buffer.concat(slices),
  };
}

const SIZES = [0, 1, SLICE_BYTES - 1, SLICE_BYTES, SLICE_BYTES + 1, 2 * SLICE_BYTES, 3 * SLICE_BYTES + 5];

describe("ObjectDigestBuilder", () => {
  it("gives the checksums of every size around a slice, for any pieces", () => {
    const bytes = randomBytes(Math.max(...SIZES));
    fc.assert(
      fc.property(
        fc.constantFrom(...SIZES),
        fc.array(fc.nat(2 * SLICE_BYTES), { maxLength: 6 }),
        (size, cuts) => {
          const builder = new ObjectDigestBuilder();
          let at = 0;
          for (const cut of cuts) {
            builder.push(bytes.subarray(at, Math.min(size, at + cut)));
            at = Math.min(size, at + cut);
          }
          builder.push(bytes.subarray(at, size));
          assert.deepEqual(builder.finish(), expected(bytes.subarray(0, size)));
        },
      ),
      { seed: testSeed(), interruptAfterTimeLimit: loopSeconds(0.003) * 1000, numRuns: 1000 },
    );
  });

  it("makes an object with a list only from the second slice on", () => {
    const one = storedObject("packs/a", expected(randomBytes(SLICE_BYTES)));
    assert.equal(one.slicesSha256, undefined);
    const digest = expected(randomBytes(SLICE_BYTES + 1));
    assert.equal(storedObject("packs/a", digest).slicesSha256, hash("sha256", digest.slices ?? ""));
  });
});

describe("digestFile", () => {
  let folder: TempFolder;
  before(async () => {
    folder = await tempFolder("digest");
  });
  after(async () => folder.remove());

  it("reads small files here and large ones in a thread, with the same result", async () => {
    for (const size of [0, 5, 3 * SLICE_BYTES + 5, 20 * SLICE_BYTES + 7]) {
      const bytes = randomBytes(size);
      const path = join(folder.path, String(size));
      await writeFile(path, bytes);
      const digest = await digestFile(path);
      const wanted = expected(bytes);
      assert.deepEqual([digest.length, digest.sha256], [wanted.length, wanted.sha256]);
      assert.deepEqual(digest.slices && Buffer.from(digest.slices), wanted.slices);
    }
  });

  it("rejects for a missing file, and with the reason of its signal", async () => {
    await assert.rejects(digestFile(join(folder.path, "none")), { code: "ENOENT" });
    const path = join(folder.path, "large");
    await writeFile(path, Buffer.alloc(64 << 20));
    const ended = new AbortController();
    const work = digestFile(path, ended.signal);
    ended.abort(new Error("enough"));
    await assert.rejects(work, /enough/);
  });
});

describe("SliceList", () => {
  it("matches each slice in its place only", async () => {
    const bytes = randomBytes(2 * SLICE_BYTES + 9);
    const list = SliceList.read(Buffer.from(expected(bytes).slices ?? ""), bytes.length);
    const slice = (index: number): Buffer => bytes.subarray(index * SLICE_BYTES, (index + 1) * SLICE_BYTES);
    for (const index of [0, 1, 2]) {
      for (const other of [0, 1, 2]) assert.equal(await list?.matches(index, slice(other)), index === other);
    }
    assert.equal(await list?.matches(3, slice(0)), false);
    assert.equal(await list?.matches(2, slice(2).subarray(1)), false);
  });

  it("is refused if it is not the list of an object of that length", () => {
    for (const length of [0, 1, 2, 4]) {
      assert.equal(SliceList.read(Buffer.alloc(length * DIGEST_BYTES), 3 * SLICE_BYTES), undefined);
    }
    assert.ok(SliceList.read(Buffer.alloc(3 * DIGEST_BYTES), 3 * SLICE_BYTES) !== undefined);
    assert.equal(SliceList.read(Buffer.alloc(3 * DIGEST_BYTES + 1), 3 * SLICE_BYTES), undefined);
  });
});
