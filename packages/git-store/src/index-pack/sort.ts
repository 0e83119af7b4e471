import { GitStoreError } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { compareBytes, hexAt } from "../oid.ts";
import { orderByOid } from "../oid-order.ts";
import type { PackTables } from "./tables.ts";

/**
 * Sorts the entry numbers of a pack by their ids.
 *
 * @throws {GitStoreError} `duplicate_object`, as `git index-pack --strict` refuses such a pack
 */
export function sortByOid(tables: PackTables): Uint32Array {
  const { oids, count } = tables;
  const length = oidBytes(tables.format);
  const order = orderByOid(oids, count, length);
  for (let i = 1; i < count; i++) {
    const a = order[i - 1]!;
    const b = order[i]!;
    if (compareBytes(oids, a * length, oids, b * length, length) === 0) throw duplicate(tables, a, b, length);
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

function duplicate(tables: PackTables, a: number, b: number, length: number): GitStoreError {
  const oid = hexAt(Buffer.from(tables.oids.buffer), a * length, length);
  const offset = Math.max(tables.offsets[a]!, tables.offsets[b]!);
  return new GitStoreError("duplicate_object", `index pack: object ${oid} is in it twice`, {
    oid,
    offset,
  });
}
