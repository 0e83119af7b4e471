/**
 * Sets of small numbers as bitmaps. Number `i` is in the set if bit `i & 31` of element `i >>> 5` is 1, the layout that
 * `ewah.ts` reads and writes. A set contains no number beyond its end.
 */
export type Bitset = Uint32Array;

export function hasBit(set: Bitset, number: number): boolean {
  return ((set[number >>> 5]! >>> (number & 31)) & 1) === 1;
}

export function setBit(set: Bitset, number: number): void {
  set[number >>> 5]! |= 1 << (number & 31);
}

/** Adds `other`, which must not be longer, to `target`. */
export function orInto(target: Bitset, other: Bitset): void {
  for (let i = 0; i < other.length; i++) target[i]! |= other[i]!;
}

/** Removes `other` from `target`; their lengths may differ. */
export function andNotInto(target: Bitset, other: Bitset): void {
  const length = Math.min(target.length, other.length);
  for (let i = 0; i < length; i++) target[i]! &= ~other[i]!;
}

/** Removes from `target` all numbers that are not in `other`; their lengths may differ. */
export function andInto(target: Bitset, other: Bitset): void {
  const length = Math.min(target.length, other.length);
  for (let i = 0; i < length; i++) target[i]! &= other[i]!;
  target.fill(0, length);
}

export function bitsOf(word: number): number {
  let v = word - ((word >>> 1) & 0x5555_5555);
  v = (v & 0x3333_3333) + ((v >>> 2) & 0x3333_3333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}

/** Counts the numbers in the set. */
export function countBits(set: Bitset): number {
  let count = 0;
  for (let i = 0; i < set.length; i++) {
    const word = set[i]!;
    if (word !== 0) count += bitsOf(word);
  }
  return count;
}

/** Finds the lowest number in `[from, end)` that is in the set (or, with `value` 0, is not), or `end`. */
export function nextBit(set: Bitset, from: number, end: number, value: 0 | 1): number {
  if (from >= end) return end;
  const flip = value === 1 ? 0 : -1;
  let element = from >>> 5;
  let word = ((set[element]! ^ flip) & (-1 << (from & 31))) >>> 0;
  const last = (end - 1) >>> 5;
  while (word === 0) {
    if (element === last) return end;
    word = (set[++element]! ^ flip) >>> 0;
  }
  return Math.min(end, element * 32 + 31 - Math.clz32(word & -word));
}

/** Yields the numbers of a set in ascending order. */
export function* numbersIn(set: Bitset): Generator<number, void, undefined> {
  for (let i = 0; i < set.length; i++) {
    for (let word = set[i]!; word !== 0; word &= word - 1) yield i * 32 + 31 - Math.clz32(word & -word);
  }
}
