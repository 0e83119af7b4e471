import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { orderByOid } from "./oid-order.ts";

/** Ids of few different bytes, so that many of them begin alike or are the same. */
const ids = fc.array(fc.uint8Array({ minLength: 20, maxLength: 20, max: 2 }), { maxLength: 300 });

test("orderByOid sorts as Buffer.compare does, also ids that begin alike", () => {
  fc.assert(
    fc.property(ids, fc.nat(9), (table, offset) => {
      const bytes = Buffer.concat([Buffer.alloc(offset), ...table]).subarray(offset);
      const order = orderByOid(bytes, table.length, 20);
      assert.deepEqual(
        Array.from(order, (at) => Buffer.from(table[at]!).toString("hex")),
        table.map((id) => Buffer.from(id).toString("hex")).toSorted(),
      );
      assert.equal(new Set(order).size, table.length);
    }),
  );
});

test("orderByOid sorts ids by all of their first 32 bits, and after them", () => {
  const hex = ["ffffffff01", "ffffffff00", "00000001ff", "0000000100", "80000000aa", "7fffffffaa"];
  const bytes = Buffer.from(hex.join(""), "hex");
  assert.deepEqual(
    Array.from(orderByOid(bytes, hex.length, 5), (at) => hex[at]),
    hex.toSorted(),
  );
});

test("orderByOid sorts more ids than fit with 32 bits of their ids into numbers", () => {
  const count = 2 ** 21 + 3;
  const bytes = Buffer.alloc(count * 4);
  for (let at = 0; at < count; at++) bytes.writeUInt32BE(Math.imul(at, 0x9e37_79b1) >>> 0, at * 4);
  const order = orderByOid(bytes, count, 4);
  let before = -1;
  for (const at of order) {
    const value = bytes.readUInt32BE(at * 4);
    assert.ok(value > before);
    before = value;
  }
});
