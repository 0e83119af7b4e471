import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { andInto, andNotInto, countBits, hasBit, nextBit, numbersIn, orInto, setBit } from "./bitset.ts";

const BITS = 256;
const numbers = fc.uniqueArray(fc.nat(BITS - 1));

function bitset(members: readonly number[], bits = BITS): Uint32Array {
  const set = new Uint32Array(bits / 32);
  for (const number of members) setBit(set, number);
  return set;
}

const sorted = (members: Iterable<number>): number[] => [...members].toSorted((a, b) => a - b);

test("numbersIn and countBits give back what setBit put in", () => {
  fc.assert(
    fc.property(numbers, (members) => {
      const set = bitset(members);
      assert.deepEqual([...numbersIn(set)], sorted(members));
      assert.equal(countBits(set), members.length);
    }),
  );
});

test("orInto, andInto and andNotInto are union, intersection and difference", () => {
  fc.assert(
    fc.property(numbers, numbers, (a, b) => {
      const result = (change: (target: Uint32Array, other: Uint32Array) => void): number[] => {
        const target = bitset(a);
        change(target, bitset(b));
        return [...numbersIn(target)];
      };
      const inB = new Set(b);
      assert.deepEqual(result(orInto), sorted(new Set([...a, ...b])));
      assert.deepEqual(result(andInto), sorted(a.filter((number) => inB.has(number))));
      assert.deepEqual(result(andNotInto), sorted(a.filter((number) => !inB.has(number))));
    }),
  );
});

test("a shorter set holds nothing beyond its end", () => {
  const long = bitset([1, 40, 200]);
  andInto(long, bitset([1, 40], 64));
  assert.deepEqual([...numbersIn(long)], [1, 40]);
  assert.equal(hasBit(bitset([1], 64), 200), false);
});

test("nextBit finds the next member and the next gap", () => {
  fc.assert(
    fc.property(
      numbers,
      fc.nat(BITS),
      fc.nat(BITS),
      fc.constantFrom(0 as const, 1 as const),
      (members, a, b, value) => {
        const [from, end] = sorted([a, b]) as [number, number];
        const set = new Set(members);
        let expected = from;
        while (expected < end && set.has(expected) !== (value === 1)) expected++;
        assert.equal(nextBit(bitset(members), from, end, value), expected);
      },
    ),
  );
});
