import { GitStoreError } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { compareBytes, hexAt } from "../oid.ts";
import type { PackTables } from "./tables.ts";

/** Number of buckets: one for each value of the first two bytes of the id. */
const BUCKETS = 65_536;
/** Buckets up to this size use insertion sort. Ids are random, so only a hostile pack has larger buckets. */
const INSERTION_SIZE = 64;

/**
 * Sorts the entry numbers of a pack by their ids.
 *
 * @throws {GitStoreError} `duplicate_object`, as `git index-pack --strict` refuses such a pack
 */
export function sortByOid(tables: PackTables): Uint32Array {
  const { oids, count } = tables;
  const length = oidBytes(tables.format);
  const ends = new Uint32Array(BUCKETS + 1);
  for (let entry = 0; entry < count; entry++) ends[bucketOf(oids, entry * length) + 1]!++;
  for (let bucket = 0; bucket < BUCKETS; bucket++) ends[bucket + 1]! += ends[bucket]!;
  const order = new Uint32Array(count);
  // Filling a bucket moves its start to its end.
  for (let entry = 0; entry < count; entry++) order[ends[bucketOf(oids, entry * length)]!++] = entry;
  const compare = (a: number, b: number): number => compareBytes(oids, a * length, oids, b * length, length);
  for (let bucket = 0, start = 0; bucket < BUCKETS; bucket++) {
    const end = ends[bucket]!;
    sortRange(order, start, end, compare);
    start = end;
  }
  for (let i = 1; i < count; i++) {
    if (compare(order[i - 1]!, order[i]!) === 0) throw duplicate(tables, order[i - 1]!, order[i]!, length);
  }
  return order;
}

/** Position in `order` of the entry whose id is at `start` of `oid`, or -1. */
export function findSorted(tables: PackTables, order: Uint32Array, oid: Uint8Array, start: number): number {
  const length = oidBytes(tables.format);
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const difference = compareBytes(tables.oids, order[middle]! * length, oid, start, length);
    if (difference === 0) return middle;
    if (difference < 0) low = middle + 1;
    else high = middle;
  }
  return -1;
}

function bucketOf(oids: Uint8Array, start: number): number {
  return (oids[start]! << 8) | oids[start + 1]!;
}

function sortRange(
  order: Uint32Array,
  start: number,
  end: number,
  compare: (a: number, b: number) => number,
): void {
  if (end - start > INSERTION_SIZE) {
    // oxlint-disable-next-line unicorn/no-array-sort -- in place, on a part of the array
    order.subarray(start, end).sort(compare);
    return;
  }
  for (let i = start + 1; i < end; i++) {
    const entry = order[i]!;
    let to = i;
    while (to > start && compare(order[to - 1]!, entry) > 0) {
      order[to] = order[to - 1]!;
      to--;
    }
    order[to] = entry;
  }
}

function duplicate(tables: PackTables, a: number, b: number, length: number): GitStoreError {
  const oid = hexAt(Buffer.from(tables.oids.buffer), a * length, length);
  const offset = Math.max(tables.offsets[a]!, tables.offsets[b]!);
  return new GitStoreError("duplicate_object", `index pack: object ${oid} is in it twice`, {
    oid,
    offset,
  });
}
