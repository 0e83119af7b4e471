import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { composeDeltas as composeWithin } from "./compose-delta.ts";
import { DeltaHeader, applyDelta } from "../pack/delta.ts";

/** Composes deltas that need no limit. */
function composeDeltas(outer: Uint8Array, inner: Uint8Array): Buffer {
  const composed = composeWithin(outer, inner, Infinity);
  assert.ok(composed);
  return composed;
}

/** One instruction of a random delta. Numbers are parts of the base, so that they fit bases of any size. */
const instruction = fc.oneof(
  fc.record({ from: fc.double({ min: 0, max: 1, noNaN: true }), length: fc.nat(200) }),
  fc.uint8Array({ minLength: 1, maxLength: 127 }),
);
const instructions = fc.array(instruction, { minLength: 1, maxLength: 30 });
type Instruction = { from: number; length: number } | Uint8Array;

function varint(size: number): number[] {
  const bytes: number[] = [];
  let rest = size;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}

/** A delta on a base, with its result made without it. */
function deltaOn(base: Buffer, list: readonly Instruction[]): { delta: Buffer; result: Buffer } {
  const ops: number[] = [];
  const parts: Uint8Array[] = [];
  for (const each of list) {
    if (each instanceof Uint8Array) {
      ops.push(each.length, ...each);
      parts.push(each);
      continue;
    }
    const from = Math.floor(each.from * base.length);
    const length = Math.min(each.length, base.length - from);
    if (length === 0) continue;
    ops.push(
      0x80 | 0x0f | 0x30,
      from & 0xff,
      (from >> 8) & 0xff,
      (from >> 16) & 0xff,
      0,
      length & 0xff,
      length >> 8,
    );
    parts.push(base.subarray(from, from + length));
  }
  const result = Buffer.concat(parts);
  return { delta: Buffer.from([...varint(base.length), ...varint(result.length), ...ops]), result };
}

function applied(base: Buffer, delta: Buffer): Buffer {
  const header = new DeltaHeader();
  header.decode(delta, 0, delta.length);
  const result = Buffer.alloc(header.resultSize);
  const input = { header, delta, deltaEnd: delta.length, base, baseStart: 0, baseSize: base.length };
  applyDelta({ ...input, result, resultStart: 0 });
  return result;
}

describe("composeDeltas", () => {
  it("the composed delta gives the result of both, for random deltas", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 3000 }),
        instructions,
        instructions,
        instructions,
        (bytes, one, two, three) => {
          const base = Buffer.from(bytes);
          const first = deltaOn(base, one);
          const second = deltaOn(first.result, two);
          const third = deltaOn(second.result, three);
          const composed = composeDeltas(second.delta, first.delta);
          assert.ok(applied(base, composed).equals(second.result));
          assert.ok(applied(base, composeDeltas(third.delta, composed)).equals(third.result));
        },
      ),
    );
  });

  it("copies of more than 64 KiB are split, and neighbours become one", () => {
    const base = Buffer.alloc(300_000, "0123456789abcdef");
    // A copy of 64 KiB from the begin, whose length has no bytes, then one of the rest.
    const inner = Buffer.from([...varint(300_000), ...varint(300_000), 0x80, 0xf4, 1, 0xe0, 0x93, 3]);
    const outer = Buffer.from([...varint(300_000), ...varint(300_000), 0x80, 0xf4, 1, 0xe0, 0x93, 3]);
    const composed = composeDeltas(outer, inner);
    assert.ok(applied(base, composed).equals(base));
    assert.ok(composed.length < 50);
  });

  it("small deltas that make a huge one, or need very many steps, end at the limit", () => {
    const rows = 16_000;
    // One byte each: of different places, so that no copies become one, or of neighbours, so that all do.
    for (const place of [(row: number) => (row * 2) % 256, (row: number) => row % 256]) {
      const copies = Array.from({ length: rows }, (_, row) => [0x91, place(row), 1]).flat();
      const inner = Buffer.from([...varint(256), ...varint(rows), ...copies]);
      const repeats = Array.from({ length: rows }, () => [0xb0, rows & 0xff, rows >> 8]).flat();
      const outer = Buffer.from([...varint(rows), ...varint(rows * rows), ...repeats]);
      assert.equal(composeWithin(outer, inner, 64 * 1024), undefined);
    }
  });

  it("deltas that cannot be, or do not fit each other, are refused", () => {
    const base = Buffer.from("0123456789");
    const { delta } = deltaOn(base, [{ from: 0, length: 10 }]);
    for (const bad of [
      [],
      [10],
      [10, 3, 3, 1, 2],
      [10, 3, 0, 1, 2],
      [10, 5, 0x91, 8, 5],
      [10, 9, 0x91, 0, 5],
      [10, 2, 0x91, 0, 5],
      [10, 5, 0x91],
      [11, 5, 0x91, 0, 5],
    ]) {
      assert.throws(() => composeDeltas(Buffer.from(bad), delta), { code: "corrupt_delta" }, String(bad));
    }
    assert.throws(() => composeDeltas(delta, Buffer.from([10, 10, 0])), { code: "corrupt_delta" });
  });
});
