import { existsSync } from "node:fs";
import { corruptIn } from "../errors.ts";
import { hashNumber, oidBytes } from "../object-format.ts";
import { PACK_HEADER_BYTES } from "./pack-entry.ts";
import type { PackIndex } from "./pack-index.ts";
import { readShared } from "../read-file.ts";

/** `RIDX` (gitformat-pack, "pack-*.rev files have the format"). */
export const REVERSE_SIGNATURE = 0x52494458;
export const REVERSE_VERSION = 1;
/** Signature, version, hash number. */
const REVERSE_HEADER_BYTES = 12;

/**
 * The objects of a pack in pack order, the order of their offsets. A pack position counts from 0 in that order. It is
 * the bit number of the object in the `.bitmap` file. 16 bytes per object, in shared memory.
 */
export class PackOrder {
  /** Index position of the object at a pack position. */
  readonly indexPositions: Uint32Array;
  /** Pack position of the object at an index position. */
  readonly packPositions: Uint32Array;
  /** Offset of the entry at each pack position. One more element holds the offset of the trailer. */
  readonly offsets: Float64Array;
  /** Path of the `.rev` file, if it is unusable. */
  readonly damagedFile: string | undefined;

  constructor(
    indexPositions: Uint32Array,
    packPositions: Uint32Array,
    offsets: Float64Array,
    damagedFile?: string,
  ) {
    this.indexPositions = indexPositions;
    this.packPositions = packPositions;
    this.offsets = offsets;
    this.damagedFile = damagedFile;
  }

  /**
   * Reads the `.rev` file of the pack, or sorts the offsets if it is missing or does not match.
   *
   * @param packBytes the pack's size
   * @throws {GitStoreError} `corrupt_index` when the offsets do not fit a pack of that size
   */
  static read(path: string, index: PackIndex, packBytes: number): PackOrder {
    const positions = fromFile(path, index);
    const order = positions === undefined ? undefined : ordered(positions, index, packBytes);
    if (order !== undefined) return order;
    const sorted = ordered(fromOffsets(index), index, packBytes, existsSync(path) ? path : undefined);
    if (sorted === undefined) throw corruptIn("corrupt_index", path, { path })("it does not match its pack");
    return sorted;
  }

  /** Finds the pack position of the entry that starts at `offset`, or -1. */
  positionAt(offset: number): number {
    const { offsets } = this;
    let low = 0;
    let high = offsets.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (offsets[middle]! < offset) low = middle + 1;
      else high = middle;
    }
    return low < offsets.length - 1 && offsets[low] === offset ? low : -1;
  }
}

/** @returns undefined when the positions and the offsets do not fit a pack of this size */
function ordered(
  indexPositions: Uint32Array,
  index: PackIndex,
  packBytes: number,
  damagedFile?: string,
): PackOrder | undefined {
  const { count } = index;
  const packPositions = new Uint32Array(new SharedArrayBuffer(count * 4));
  const offsets = new Float64Array(new SharedArrayBuffer((count + 1) * 8));
  let previous = PACK_HEADER_BYTES - 1;
  for (let p = 0; p < count; p++) {
    const position = indexPositions[p]!;
    const offset = position < count ? index.offsetAt(position) : 0;
    // Offsets that only increase also ensure that no object occurs twice.
    if (offset <= previous || (p === 0 && offset !== PACK_HEADER_BYTES)) return undefined;
    packPositions[position] = p;
    offsets[p] = offset;
    previous = offset;
  }
  const trailer = packBytes - oidBytes(index.format);
  if (trailer <= previous) return undefined;
  offsets[count] = trailer;
  return new PackOrder(indexPositions, packPositions, offsets, damagedFile);
}

/** @returns undefined when the file is missing or unusable */
function fromFile(path: string, index: PackIndex): Uint32Array | undefined {
  let bytes: Buffer;
  try {
    bytes = readShared(path);
  } catch {
    return undefined;
  }
  const expected = REVERSE_HEADER_BYTES + index.count * 4 + 2 * oidBytes(index.format);
  if (
    bytes.length !== expected ||
    bytes.readUInt32BE(0) !== REVERSE_SIGNATURE ||
    bytes.readUInt32BE(4) !== REVERSE_VERSION ||
    bytes.readUInt32BE(8) !== hashNumber(index.format)
  ) {
    return undefined;
  }
  const positions = new Uint32Array(new SharedArrayBuffer(index.count * 4));
  for (let p = 0; p < index.count; p++) positions[p] = bytes.readUInt32BE(REVERSE_HEADER_BYTES + p * 4);
  return positions;
}

function fromOffsets(index: PackIndex): Uint32Array {
  const offsets = new Float64Array(index.count);
  const positions = new Uint32Array(new SharedArrayBuffer(index.count * 4));
  for (let position = 0; position < index.count; position++) {
    offsets[position] = index.offsetAt(position);
    positions[position] = position;
  }
  // oxlint-disable-next-line unicorn/no-array-sort -- in place: the memory is shared
  return positions.sort((a, b) => offsets[a]! - offsets[b]!);
}
