import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { compareBytes } from "../oid.ts";

/** Flag in {@link PackTables.types}, added to the real type when a delta is resolved. */
export const RESOLVED = 8;

/**
 * Table of the entries of a pack that is being indexed, by entry number (the order in the pack), in shared memory.
 * It takes 41 bytes per object with SHA-1. The system provides memory only as it is written, so a header that claims
 * too many objects costs nothing.
 *
 * `firstChild` and `nextSibling` hold the delta forest: entry numbers plus one, 0 for none.
 */
export interface PackTables {
  readonly format: ObjectFormat;
  readonly count: number;
  /** Offset of each entry, and of the trailer. */
  readonly offsets: Float64Array;
  readonly oids: Uint8Array;
  readonly crcs: Uint32Array;
  /** Type number as in the pack. A resolved delta has the type of its base with {@link RESOLVED}. */
  readonly types: Uint8Array;
  readonly firstChild: Int32Array;
  readonly nextSibling: Int32Array;
}

/** Allocates the tables. @throws {GitStoreError} `too_large` when memory is insufficient */
export function createTables(format: ObjectFormat, count: number): PackTables {
  const shared = (bytes: number): SharedArrayBuffer => {
    try {
      return new SharedArrayBuffer(bytes);
    } catch (error) {
      throw new GitStoreError(
        "too_large",
        `index pack: no memory for ${count} objects`,
        {},
        { cause: error },
      );
    }
  };
  return {
    format,
    count,
    offsets: new Float64Array(shared((count + 1) * 8)),
    oids: new Uint8Array(shared(count * oidBytes(format))),
    crcs: new Uint32Array(shared(count * 4)),
    types: new Uint8Array(shared(count)),
    firstChild: new Int32Array(shared(count * 4)),
    nextSibling: new Int32Array(shared(count * 4)),
  };
}

/** Finds the entry that starts at `offset` among the first `count`, or -1. */
export function entryAt(offsets: Float64Array, count: number, offset: number): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (offsets[middle]! < offset) low = middle + 1;
    else high = middle;
  }
  return low < count && offsets[low] === offset ? low : -1;
}

/** Makes `child` the first child of `base`. */
export function addChild(tables: PackTables, base: number, child: number): void {
  tables.nextSibling[child] = tables.firstChild[base]!;
  tables.firstChild[base] = child + 1;
}

/**
 * The ref-deltas of a pack, sorted by the id of their base, in shared memory. A group contains all deltas of one base.
 * The number of its first delta identifies it.
 */
export interface RefDeltas {
  readonly count: number;
  /** Entry number of each delta. */
  readonly entries: Int32Array;
  /** Base id of each delta. */
  readonly bases: Uint8Array;
  /** 1 at the first delta of a group once a thread has taken the group. */
  readonly claimed: Int32Array;
}

/** Gathers ref-deltas while the pack is scanned. */
export class RefDeltaCollector {
  readonly #oidLength: number;
  readonly #entries: number[] = [];
  #bases: Buffer = Buffer.alloc(0);

  constructor(format: ObjectFormat) {
    this.#oidLength = oidBytes(format);
  }

  add(entry: number, bytes: Uint8Array, baseStart: number): void {
    const at = this.#entries.length * this.#oidLength;
    if (at + this.#oidLength > this.#bases.length) {
      const larger = Buffer.allocUnsafe(Math.max(4096, this.#bases.length * 2));
      this.#bases.copy(larger);
      this.#bases = larger;
    }
    for (let i = 0; i < this.#oidLength; i++) this.#bases[at + i] = bytes[baseStart + i]!;
    this.#entries.push(entry);
  }

  sorted(): RefDeltas {
    const length = this.#oidLength;
    const count = this.#entries.length;
    const order = Uint32Array.from({ length: count }, (_, i) => i).toSorted(
      (a, b) => compareBytes(this.#bases, a * length, this.#bases, b * length, length) || a - b,
    );
    const entries = new Int32Array(new SharedArrayBuffer(count * 4));
    const bases = new Uint8Array(new SharedArrayBuffer(count * length));
    for (let i = 0; i < count; i++) {
      const from = order[i]!;
      entries[i] = this.#entries[from]!;
      bases.set(this.#bases.subarray(from * length, (from + 1) * length), i * length);
    }
    return { count, entries, bases, claimed: new Int32Array(new SharedArrayBuffer(count * 4)) };
  }
}

/** Finds the group of deltas whose base has the id at `start` of `oids`, or -1. */
function findGroup(refs: RefDeltas, oids: Uint8Array, start: number, length: number): number {
  let low = 0;
  let high = refs.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareBytes(refs.bases, middle * length, oids, start, length) < 0) low = middle + 1;
    else high = middle;
  }
  return low < refs.count && compareBytes(refs.bases, low * length, oids, start, length) === 0 ? low : -1;
}

/** Claims a group for this thread. @returns false when another thread has it */
export function claimGroup(refs: RefDeltas, group: number): boolean {
  return Atomics.exchange(refs.claimed, group, 1) === 0;
}

/** Index after the last delta of a group. */
export function groupEnd(refs: RefDeltas, group: number, length: number): number {
  let end = group + 1;
  while (end < refs.count && compareBytes(refs.bases, end * length, refs.bases, group * length, length) === 0)
    end++;
  return end;
}

/** Makes the ref-deltas that wait for the id of `entry` its children. The id must be known. */
export function linkWaiting(tables: PackTables, refs: RefDeltas, entry: number): void {
  if (refs.count === 0) return;
  const length = oidBytes(tables.format);
  const group = findGroup(refs, tables.oids, entry * length, length);
  if (group < 0 || !claimGroup(refs, group)) return;
  for (let i = groupEnd(refs, group, length) - 1; i >= group; i--) addChild(tables, entry, refs.entries[i]!);
}
