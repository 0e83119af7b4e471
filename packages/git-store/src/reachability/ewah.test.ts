import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { GitStoreError } from "../errors.ts";
import { bitmapLength, decodeEwah, encodeEwah, skipEwah } from "./ewah.ts";

/** Bitmaps as they are: long runs of zeros and ones with noise between. */
const bitmaps = fc
  .array(
    fc.oneof(
      fc.record({
        kind: fc.constant("run" as const),
        bit: fc.boolean(),
        length: fc.integer({ min: 1, max: 700 }),
      }),
      fc.record({
        kind: fc.constant("noise" as const),
        words: fc.array(fc.nat({ max: 0xffff_ffff }), { maxLength: 9 }),
      }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => {
    const bits: number[] = [];
    for (const part of parts) {
      if (part.kind === "run") bits.push(...Array<number>(part.length).fill(part.bit ? 1 : 0));
      else for (const word of part.words) for (let i = 0; i < 32; i++) bits.push((word >>> i) & 1);
    }
    const bitmap = new Uint32Array(bitmapLength(bits.length));
    for (const [i, bit] of bits.entries())
      if (bit === 1) bitmap[i >>> 5] = (bitmap[i >>> 5] ?? 0) | (1 << (i & 31));
    return { bits: bits.length, bitmap };
  });

describe("EWAH", () => {
  it("decodes what it encodes", () => {
    fc.assert(
      fc.property(bitmaps, ({ bits, bitmap }) => {
        const bytes = encodeEwah(bitmap, bits);
        const back = new Uint32Array(bitmap.length);
        assert.equal(decodeEwah(bytes, 0, back), bytes.length);
        assert.equal(skipEwah(bytes, 0), bytes.length);
        assert.deepEqual(back, bitmap);
      }),
    );
  });

  it("combines by exclusive or: twice gives back what was there", () => {
    fc.assert(
      fc.property(bitmaps, ({ bits, bitmap }) => {
        const bytes = encodeEwah(bitmap, bits);
        const target = Uint32Array.from(bitmap, (word) => word ^ 0x5555_5555);
        const before = target.slice();
        decodeEwah(bytes, 0, target, "xor");
        decodeEwah(bytes, 0, target, "xor");
        assert.deepEqual(target, before);
      }),
    );
  });

  it("encodes an empty bitmap as one marker", () => {
    assert.equal(
      encodeEwah(new Uint32Array(0), 0).toString("hex"),
      ["00000000", "00000001", "0000000000000000", "00000000"].join(""),
    );
  });

  it("matches a published vector: bits 0..127 set, then a literal 5", () => {
    const bitmap = new Uint32Array(6).fill(0xffff_ffff, 0, 4);
    bitmap[4] = 5;
    // marker: run bit 1, run length 2, one literal
    assert.equal(
      encodeEwah(bitmap, 192).toString("hex"),
      ["000000c0", "00000002", "0000000200000005", "0000000000000005", "00000000"].join(""),
    );
  });

  it("refuses every cut of a bitmap, and never reads or writes outside", () => {
    const bitmap = new Uint32Array(40).map((_, i) => (i % 3 === 0 ? 0xffff_ffff : i * 7919));
    const bytes = encodeEwah(bitmap, 40 * 32);
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => decodeEwah(bytes.subarray(0, length), 0, new Uint32Array(40)), GitStoreError);
    }
    assert.throws(() => decodeEwah(bytes, 0, new Uint32Array(10)), GitStoreError);
  });

  it("survives any flipped bit with an error or some bitmap, never a hang", () => {
    const bitmap = new Uint32Array(64).map((_, i) => (i < 20 ? 0xffff_ffff : i % 2));
    const bytes = encodeEwah(bitmap, 64 * 32);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const bad = Buffer.from(bytes);
      bad[bit >>> 3] = (bad[bit >>> 3] ?? 0) ^ (1 << (bit & 7));
      try {
        decodeEwah(bad, 0, new Uint32Array(64));
      } catch (error) {
        assert.ok(error instanceof GitStoreError);
      }
    }
  });
});
