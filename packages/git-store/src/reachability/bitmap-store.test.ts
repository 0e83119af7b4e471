import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { setBit } from "./bitset.ts";
import { BitmapStore } from "./bitmap-store.ts";
import { encodeEwah } from "./ewah.ts";
import { ObjectNumbers } from "./object-numbers.ts";

/** Sets that grow by a few members, as those of neighbours in history do; they may get longer, too. */
const histories = fc.array(
  fc.record({ added: fc.array(fc.nat(511), { maxLength: 6 }), keep: fc.boolean(), longer: fc.boolean() }),
  { minLength: 1, maxLength: 80 },
);

function setsOf(history: readonly { added: readonly number[]; longer: boolean }[]): Uint32Array[] {
  let current: Uint32Array = new Uint32Array(16);
  return history.map(({ added, longer }) => {
    const next = new Uint32Array(current.length + (longer ? 2 : 0));
    next.set(current);
    for (const number of added) setBit(next, number);
    current = next;
    return next;
  });
}

test("BitmapStore returns the added bitmaps, regardless of their base", () => {
  fc.assert(
    fc.property(histories, (history) => {
      const store = new BitmapStore(new ObjectNumbers("sha1"));
      const sets = setsOf(history);
      for (const [number, set] of sets.entries()) store.add(number, set, history[number]!.keep);
      for (const [number, set] of sets.entries()) assert.deepEqual(store.get(number), set);
    }),
  );
});

test("BitmapStore within a small limit gives the right bitmap or none", () => {
  fc.assert(
    fc.property(histories, fc.integer({ min: 0, max: 600 }), (history, limit) => {
      const store = new BitmapStore(new ObjectNumbers("sha1"), limit);
      for (const [number, set] of setsOf(history).entries()) {
        store.add(number, set, history[number]!.keep);
        const found = store.get(number);
        if (found !== undefined) assert.deepEqual(found, set);
      }
    }),
  );
});

test("BitmapStore ends a chain of differences that leads back to itself", () => {
  const store = new BitmapStore(new ObjectNumbers("sha1"));
  const ewah = Buffer.from(encodeEwah(Uint32Array.from([1, 2]), 64));
  store.addCompressed(1, { ewah, base: 2 }, 0);
  store.addCompressed(2, { ewah, base: 1 }, 0);
  assert.equal(store.get(1), undefined);
});
