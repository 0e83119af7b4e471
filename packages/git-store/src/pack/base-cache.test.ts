import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BaseCache } from "./base-cache.ts";

const object = (bytes: number): { type: number; content: Buffer } => ({
  type: 3,
  content: Buffer.alloc(bytes),
});

test("BaseCache over its capacity drops what was not used for longest", () => {
  const cache = new BaseCache(100);
  for (let key = 0; key < 4; key++) cache.set(key, object(25));
  assert.ok(cache.get(0));
  cache.set(4, object(25));
  assert.equal(cache.get(1), undefined);
  assert.ok(cache.get(0));
  assert.equal(cache.size, 100);
});

test("BaseCache does not take an object above a quarter of its capacity", () => {
  const cache = new BaseCache(100);
  cache.set(1, object(20));
  cache.set(2, object(26));
  assert.equal(cache.get(2), undefined);
  assert.ok(cache.get(1));
});

test("BaseCache behaves like a list in order of use, for any sequence of calls", () => {
  const step = fc.record({ key: fc.nat(8), bytes: fc.nat(30), set: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const cache = new BaseCache(100);
      // Oldest first.
      let model: { key: number; bytes: number }[] = [];
      for (const { key, bytes, set } of steps) {
        const known = model.find((entry) => entry.key === key);
        if (set) {
          cache.set(key, object(bytes));
          if (bytes > 25) continue;
          model = [...model.filter((entry) => entry.key !== key), { key, bytes }];
          while (model.reduce((sum, entry) => sum + entry.bytes, 0) > 100) model.shift();
        } else {
          assert.equal(cache.get(key)?.content.length, known?.bytes);
          if (known !== undefined) model = [...model.filter((entry) => entry !== known), known];
        }
        assert.equal(
          cache.size,
          model.reduce((sum, entry) => sum + entry.bytes, 0),
        );
      }
    }),
  );
});
