import type { ObjectFormat } from "@devplat/git-protocol";
import { corruptIn } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { compareBytes, hexAt, type Oid } from "../oid.ts";
import { readShared } from "../read-file.ts";

/** `\377tOc`, then version 2 (gitformat-pack, "Version 2 pack-*.idx files"). */
export const INDEX_SIGNATURE = 0xff744f63;
export const INDEX_VERSION = 2;
/** Signature and version. */
const INDEX_HEADER_BYTES = 8;
/** Fan-out table: 256 counts of the ids whose first byte is not greater than n. */
export const FANOUT_BYTES = 1024;
/** Flag of an offset that is a position in the table of 64-bit offsets. */
export const LARGE_OFFSET_BIT = 0x8000_0000;

/**
 * The `.idx` file of a pack, version 2, in shared memory: 28 bytes per object (SHA-1), 40 (SHA-256).
 * Index positions count from 0 in the order of ids.
 */
export class PackIndex {
  readonly format: ObjectFormat;
  /** Objects in the pack. */
  readonly count: number;
  /** Content of the file, in a SharedArrayBuffer. */
  readonly bytes: Buffer;
  readonly #view: DataView;
  readonly #oidLength: number;
  readonly #crcStart: number;
  readonly #offsetStart: number;
  readonly #largeStart: number;
  readonly #largeCount: number;

  /**
   * @param bytes the content of an `.idx` file
   * @param path only for error messages
   * @throws {GitStoreError} `corrupt_index` when the tables are inconsistent; checksums are not checked
   */
  constructor(bytes: Buffer, format: ObjectFormat, path: string) {
    const corrupt = corruptIn("corrupt_index", `the index ${path}`, { path });
    const oidLength = oidBytes(format);
    const tables = INDEX_HEADER_BYTES + FANOUT_BYTES;
    if (bytes.length < tables + 2 * oidLength) throw corrupt("it is too short");
    this.format = format;
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#oidLength = oidLength;
    if (this.#view.getUint32(0) !== INDEX_SIGNATURE) throw corrupt("it has no signature of an index");
    const version = this.#view.getUint32(4);
    if (version !== INDEX_VERSION) throw corrupt(`version ${version}, not ${INDEX_VERSION}`);
    let previous = 0;
    for (let n = 0; n < 256; n++) {
      const total = this.#fanout(n);
      if (total < previous) throw corrupt("its fan-out decreases");
      previous = total;
    }
    this.count = previous;
    this.#crcStart = tables + this.count * oidLength;
    this.#offsetStart = this.#crcStart + this.count * 4;
    this.#largeStart = this.#offsetStart + this.count * 4;
    const largeBytes = bytes.length - 2 * oidLength - this.#largeStart;
    if (largeBytes < 0 || largeBytes % 8 !== 0 || largeBytes / 8 > this.count) {
      throw corrupt("its size does not fit its number of objects");
    }
    this.#largeCount = largeBytes / 8;
  }

  /** Reads an `.idx` file into shared memory. */
  static read(path: string, format: ObjectFormat): PackIndex {
    return new PackIndex(readShared(path), format, path);
  }

  #fanout(byte: number): number {
    return this.#view.getUint32(INDEX_HEADER_BYTES + byte * 4);
  }

  #oidStart(position: number): number {
    return INDEX_HEADER_BYTES + FANOUT_BYTES + position * this.#oidLength;
  }

  /** Finds the position of the id in `oid` at `start`, or -1, by binary search inside one fan-out range. */
  find(oid: Uint8Array, start = 0): number {
    const first = oid[start]!;
    let low = first === 0 ? 0 : this.#fanout(first - 1);
    let high = this.#fanout(first);
    // The first four bytes, compared as one number, decide nearly every comparison.
    const word =
      ((oid[start]! << 24) | (oid[start + 1]! << 16) | (oid[start + 2]! << 8) | oid[start + 3]!) >>> 0;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.#oidStart(middle);
      const other = this.#view.getUint32(at);
      let order = word - other;
      if (order === 0) order = compareBytes(oid, start + 4, this.bytes, at + 4, this.#oidLength - 4);
      if (order === 0) return middle;
      if (order < 0) high = middle;
      else low = middle + 1;
    }
    return -1;
  }

  /** Finds the positions of ids that start with a hex prefix of at least 2 digits, as `[first, end)`. */
  range(prefix: string): { first: number; end: number } {
    const digits = this.#oidLength * 2;
    const lowest = Buffer.from(prefix.padEnd(digits, "0"), "hex");
    const highest = Buffer.from(prefix.padEnd(digits, "f"), "hex");
    return { first: this.#bound(lowest, 0), end: this.#bound(highest, 1) };
  }

  /** Counts the ids that are lower than `oid` (or, with `strict` 1, not higher). */
  #bound(oid: Buffer, strict: 0 | 1): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = compareBytes(this.bytes, this.#oidStart(middle), oid, 0, this.#oidLength);
      if (order < strict) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the id at a position, in hex. */
  oidAt(position: number): Oid {
    return hexAt(this.bytes, this.#oidStart(position), this.#oidLength);
  }

  /** Returns the offset in {@link bytes} of the id at a position. */
  oidStartAt(position: number): number {
    return this.#oidStart(position);
  }

  /** Returns the CRC-32 of the entry's bytes in the pack. */
  crcAt(position: number): number {
    return this.#view.getUint32(this.#crcStart + position * 4);
  }

  /** Returns the offset of the entry in the pack. @throws {GitStoreError} `corrupt_index` */
  offsetAt(position: number): number {
    const offset = this.#view.getUint32(this.#offsetStart + position * 4);
    if (offset < LARGE_OFFSET_BIT) return offset;
    const large = offset - LARGE_OFFSET_BIT;
    if (large >= this.#largeCount)
      throw corruptIn("corrupt_index", "a pack index")("a 64-bit offset outside its table");
    const at = this.#largeStart + large * 8;
    return this.#view.getUint32(at) * 0x1_0000_0000 + this.#view.getUint32(at + 4);
  }

  /** The checksum at the end of the pack that this index belongs to. */
  get packChecksum(): Buffer {
    return this.bytes.subarray(this.bytes.length - 2 * this.#oidLength, this.bytes.length - this.#oidLength);
  }

  /** The content that the checksum of this file covers. */
  get content(): Buffer {
    return this.bytes.subarray(0, this.bytes.length - this.#oidLength);
  }

  /** The checksum that is stored in this file. It may be wrong. */
  get checksum(): Buffer {
    return this.bytes.subarray(this.bytes.length - this.#oidLength);
  }
}
