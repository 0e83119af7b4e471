import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { keptPacks } from "./geometric.ts";

test("keptPacks keeps all packs of a geometric progression", () => {
  for (const counts of [[], [1], [4, 2], [200, 60, 20, 3]]) assert.equal(keptPacks(counts), counts.length);
});

test("keptPacks merges from the oldest pack that is too small for its successors", () => {
  assert.equal(keptPacks([200, 30, 30]), 1);
  assert.equal(keptPacks([200, 60, 30, 1]), 1);
  assert.equal(keptPacks([10, 1, 1, 900]), 0);
});

test("after the merge each pack has at least twice the objects of all later packs", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 100_000 }), { maxLength: 40 }), (counts) => {
      const kept = keptPacks(counts);
      const merged = counts.slice(kept).reduce((sum, count) => sum + count, 0);
      const after = [...counts.slice(0, kept), ...(merged === 0 ? [] : [merged])];
      let later = 0;
      for (const count of after.toReversed()) {
        assert.ok(count >= 2 * later);
        later += count;
      }
      assert.ok(after.length <= Math.log2(counts.reduce((sum, count) => sum + count, 1)) + 1);
    }),
  );
});
