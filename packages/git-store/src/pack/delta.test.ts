import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { encodeDelta, simpleDelta, type DeltaOp } from "../../test/pack-builder.test-kit.ts";
import { applyDelta, DeltaHeader } from "./delta.ts";
import { GitStoreError } from "../errors.ts";

function apply(base: Buffer, delta: Buffer): Buffer {
  const header = new DeltaHeader();
  header.decode(delta, 0, delta.length);
  // Margins around base and result show a read or write outside of them.
  const margin = 7;
  const framed = Buffer.concat([Buffer.alloc(margin, 0xaa), base, Buffer.alloc(margin, 0xaa)]);
  const result = Buffer.alloc(margin + header.resultSize + margin, 0x55);
  applyDelta({
    header,
    delta,
    deltaEnd: delta.length,
    base: framed,
    baseStart: margin,
    baseSize: base.length,
    result,
    resultStart: margin,
  });
  assert.ok(result.subarray(0, margin).every((byte) => byte === 0x55));
  assert.ok(result.subarray(margin + header.resultSize).every((byte) => byte === 0x55));
  return result.subarray(margin, margin + header.resultSize);
}

const bytes = fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array));

test("applyDelta of a delta between any two contents gives the second", () => {
  fc.assert(
    fc.property(bytes, bytes, (base, result) => {
      assert.deepEqual(apply(base, simpleDelta(base, result)), result);
    }),
  );
});

test("applyDelta does any list of copies and insertions", () => {
  const base = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31) % 251));
  const copy = fc
    .tuple(fc.nat(base.length - 1), fc.constantFrom(1, 5, 23, 24, 25, 127, 65_535, 65_536, 65_537, 70_000))
    .map(([from, length]): DeltaOp => ({ copy: [from, Math.min(length, base.length - from)] }));
  const insert = bytes.map((piece): DeltaOp => ({ insert: piece }));
  fc.assert(
    fc.property(fc.array(fc.oneof(copy, insert), { maxLength: 12 }), (ops) => {
      const expected = Buffer.concat(
        ops.map((op) => ("insert" in op ? op.insert : base.subarray(op.copy[0], op.copy[0] + op.copy[1]))),
      );
      const delta = encodeDelta(base.length, expected.length, ops);
      assert.deepEqual(apply(base, delta), expected);
    }),
    { numRuns: 60 },
  );
});

test("applyDelta of any bytes gives a typed error or a result of the claimed size", () => {
  const base = Buffer.from("the base of the delta");
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (array) => {
      const delta = Buffer.concat([Buffer.from([base.length, 30]), Buffer.from(array)]);
      try {
        assert.equal(apply(base, delta).length, 30);
      } catch (error) {
        assert.ok(error instanceof GitStoreError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
});

const BASE = Buffer.from("0123456789");
const FAULTS: [name: string, code: string, delta: Buffer][] = [
  ["no bytes", "corrupt_delta", Buffer.alloc(0)],
  ["a size that does not end", "corrupt_delta", Buffer.from([0x80])],
  ["a size beyond 2^53", "corrupt_delta", Buffer.from([10, 255, 255, 255, 255, 255, 255, 255, 255, 127])],
  ["a base of another size", "delta_out_of_base", encodeDelta(11, 1, [{ copy: [0, 1] }])],
  ["a copy past the base", "delta_out_of_base", encodeDelta(10, 5, [{ copy: [6, 5] }])],
  ["a copy far past the base", "delta_out_of_base", encodeDelta(10, 5, [{ copy: [0xfffffff0, 5] }])],
  ["opcode 0", "corrupt_delta", Buffer.from([10, 1, 0])],
  ["a copy cut in its offset", "corrupt_delta", Buffer.from([10, 1, 0x81])],
  ["an insertion cut short", "corrupt_delta", Buffer.from([10, 5, 5, 1, 2])],
  ["more than its result size", "corrupt_delta", encodeDelta(10, 3, [{ copy: [0, 4] }])],
  ["less than its result size", "corrupt_delta", encodeDelta(10, 5, [{ copy: [0, 4] }])],
];

for (const [name, code, delta] of FAULTS) {
  test(`applyDelta of a delta with ${name} throws ${code}`, () => {
    assert.throws(() => apply(BASE, delta), { code });
  });
}
