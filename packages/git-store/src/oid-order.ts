import { compareBytes } from "./oid.ts";

/** Bits of an exact integer in a number. */
const EXACT_BITS = 53;
const PREFIX_BITS = 32;

/**
 * Returns the numbers of the ids in a table in the order of the ids. Numbers sort ten times faster than by a function, so
 * the first bits of an id and its number in the table become one exact number.
 *
 * Memory: 12 bytes for each id.
 *
 * @param ids `count` ids of `width` bytes each, one after another
 * @param width at least 4
 */
export function orderByOid(ids: Uint8Array, count: number, width: number): Uint32Array {
  const view = new DataView(ids.buffer, ids.byteOffset);
  const numberBits = Math.max(EXACT_BITS - PREFIX_BITS, 32 - Math.clz32(count));
  const numbers = 2 ** numberBits;
  const dropped = numberBits - (EXACT_BITS - PREFIX_BITS);
  const keys = new Float64Array(count);
  for (let at = 0; at < count; at++) keys[at] = (view.getUint32(at * width) >>> dropped) * numbers + at;
  keys.sort();
  const order = new Uint32Array(count);
  let runStart = 0;
  let runPrefix = -1;
  const compare = (a: number, b: number): number => compareBytes(ids, a * width, ids, b * width, width);
  for (let i = 0; i < count; i++) {
    const key = keys[i]!;
    const prefix = Math.floor(key / numbers);
    order[i] = key - prefix * numbers;
    if (prefix === runPrefix) continue;
    sortRun(order, runStart, i, compare);
    runStart = i;
    runPrefix = prefix;
  }
  sortRun(order, runStart, count, compare);
  return order;
}

/** Sorts ids that begin alike. Ids are random, so only a hostile pack has many of them. */
function sortRun(
  order: Uint32Array,
  start: number,
  end: number,
  compare: (a: number, b: number) => number,
): void {
  // oxlint-disable-next-line unicorn/no-array-sort -- in place, on a part of the array
  if (end - start > 1) order.subarray(start, end).sort(compare);
}
