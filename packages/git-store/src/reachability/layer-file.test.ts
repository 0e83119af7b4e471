import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { GitStoreError } from "../errors.ts";
import { encodeEwah } from "./ewah.ts";
import { decodeLayer, encodeLayer, type Layer } from "./layer-file.ts";

function layer(): Layer {
  const set = (...words: number[]): Uint32Array => Uint32Array.from(words);
  return {
    format: "sha1",
    packs: [
      { checksum: Buffer.alloc(20, 1), objectCount: 70 },
      { checksum: Buffer.alloc(20, 2), objectCount: 40 },
    ],
    types: { commits: set(3, 0), trees: set(12, 0), blobs: set(0xf0, 1), tags: set(0, 128) },
    commits: new Map([
      [71, { ewah: Buffer.from(encodeEwah(set(0xffff_ffff, 1, 2, 3), 110)), base: undefined }],
      [5, { ewah: Buffer.from(encodeEwah(set(0, 0, 0, 0), 110)), base: 71 }],
    ]),
  };
}

function reseal(bytes: Buffer): Buffer {
  const body = bytes.subarray(0, -20);
  return Buffer.concat([body, createHash("sha1").update(body).digest()]);
}

test("decodeLayer gives back what encodeLayer wrote", () => {
  const written = layer();
  const read = decodeLayer(encodeLayer(written), "sha1");
  assert.deepEqual(read.types, written.types);
  assert.deepEqual([...read.commits], [...written.commits]);
  assert.deepEqual(
    read.packs.map(({ checksum, objectCount }) => [Buffer.from(checksum).toString("hex"), objectCount]),
    written.packs.map(({ checksum, objectCount }) => [Buffer.from(checksum).toString("hex"), objectCount]),
  );
});

test("decodeLayer refuses a file with a changed byte", () => {
  const bytes = encodeLayer(layer());
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const changed = Buffer.from(bytes);
      changed[at]! ^= change;
      assert.throws(() => decodeLayer(changed, "sha1"), GitStoreError);
    }),
  );
});

test("decodeLayer gives a typed error or a layer for any bytes under a right checksum", () => {
  const bytes = encodeLayer(layer());
  fc.assert(
    fc.property(fc.nat(bytes.length - 21), fc.nat(255), fc.nat(bytes.length - 1), (at, value, cut) => {
      const changed = Buffer.from(bytes);
      changed[at] = value;
      for (const candidate of [reseal(changed), reseal(changed.subarray(cut))]) {
        try {
          decodeLayer(candidate, "sha1");
        } catch (error) {
          assert.ok(error instanceof GitStoreError, String(error));
        }
      }
    }),
  );
});

test("decodeLayer refuses an entry with an unknown object, and another object format", () => {
  const ewah = Buffer.from(encodeEwah(new Uint32Array(4), 110));
  for (const [number, base] of [
    [110, undefined],
    [5, 110],
  ] as const) {
    const wrong = { ...layer(), commits: new Map([[number, { ewah, base }]]) };
    assert.throws(() => decodeLayer(encodeLayer(wrong), "sha1"), { code: "corrupt_index" });
  }
  assert.throws(() => decodeLayer(encodeLayer(layer()), "sha256"), GitStoreError);
});
