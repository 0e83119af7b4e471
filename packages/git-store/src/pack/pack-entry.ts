import { GitStoreError } from "../errors.ts";
import { OFS_DELTA, REF_DELTA } from "../object-format.ts";

/** Bytes of a pack's header: `PACK`, version, number of objects (gitformat-pack). */
export const PACK_HEADER_BYTES = 12;
const SIGNATURE = 0x5041434b;
const VERSION = 2;

/**
 * Maximum bytes of an entry's header: 10 for type and size (4 + 9 × 7 bits ≥ 64), then a base offset of 10 or an id
 * of 32.
 */
export const MAX_ENTRY_HEADER_BYTES = 42;

/** Reads a pack's header. @returns the number of objects. @throws {GitStoreError} `not_a_pack`, `truncated` */
export function decodePackHeader(bytes: Buffer): number {
  if (bytes.length < PACK_HEADER_BYTES) {
    throw new GitStoreError("truncated", `read pack header: ${bytes.length} of ${PACK_HEADER_BYTES} bytes`);
  }
  if (bytes.readUInt32BE(0) !== SIGNATURE) {
    throw new GitStoreError("not_a_pack", "read pack header: it does not start with PACK");
  }
  const version = bytes.readUInt32BE(4);
  // Version 3 is documented, but git never writes it. Only index-pack reads it.
  if (version !== VERSION)
    throw new GitStoreError("not_a_pack", `read pack header: version ${version}, not 2`);
  return bytes.readUInt32BE(8);
}

/** Encodes the header of a pack with `objectCount` entries. */
export function encodePackHeader(objectCount: number): Buffer {
  const bytes = Buffer.allocUnsafe(PACK_HEADER_BYTES);
  bytes.writeUInt32BE(SIGNATURE, 0);
  bytes.writeUInt32BE(VERSION, 4);
  bytes.writeUInt32BE(objectCount, 8);
  return bytes;
}

/** The header of a pack entry. One instance is reused for many entries. */
export class EntryHeader {
  /** Type number: 1–4 an object, 6 an ofs-delta, 7 a ref-delta. */
  type = 0;
  /** Inflated bytes of the object or the delta. */
  size = 0;
  /** Bytes from the entry's start to its compressed data. */
  length = 0;
  /** Bytes from the start of an ofs-delta's base to the start of the delta; otherwise 0. */
  baseDistance = 0;
  /** Offset of a ref-delta's base id in the decoded bytes; otherwise 0. */
  baseOidStart = 0;

  /**
   * Reads the header at `start`. Decoding stops at `end`.
   *
   * @returns false when the header does not end before `end`
   * @throws {GitStoreError} `bad_entry` for type 0 or 5, or a number beyond 2^53
   */
  decode(bytes: Uint8Array, start: number, end: number, oidLength: number): boolean {
    let at = start;
    if (at >= end) return false;
    let byte = bytes[at++]!;
    this.type = (byte >> 4) & 7;
    let size = byte & 15;
    let factor = 16;
    while (byte & 0x80) {
      if (at >= end) return false;
      byte = bytes[at++]!;
      size += (byte & 0x7f) * factor;
      factor *= 128;
      if (size > Number.MAX_SAFE_INTEGER) throw badEntry("a size beyond 2^53");
    }
    this.size = size;
    this.baseDistance = 0;
    this.baseOidStart = 0;
    if (this.type === OFS_DELTA) {
      if (at >= end) return false;
      byte = bytes[at++]!;
      let distance = byte & 0x7f;
      while (byte & 0x80) {
        if (at >= end) return false;
        byte = bytes[at++]!;
        // The "+ 1" gives every distance exactly one encoding (gitformat-pack, offset encoding).
        distance = (distance + 1) * 128 + (byte & 0x7f);
        if (distance > Number.MAX_SAFE_INTEGER) throw badEntry("a base distance beyond 2^53");
      }
      this.baseDistance = distance;
    } else if (this.type === REF_DELTA) {
      this.baseOidStart = at;
      at += oidLength;
      if (at > end) return false;
    } else if (this.type === 0 || this.type === 5) {
      throw badEntry(`type ${this.type}`);
    }
    this.length = at - start;
    return true;
  }
}

function badEntry(found: string): GitStoreError {
  return new GitStoreError("bad_entry", `read pack entry: ${found}`);
}

/** Writes an entry's type and size at `start`. @returns the end. */
export function encodeTypeAndSize(target: Uint8Array, start: number, type: number, size: number): number {
  let at = start;
  let rest = Math.floor(size / 16);
  target[at] = (type << 4) | (size % 16) | (rest > 0 ? 0x80 : 0);
  at++;
  while (rest > 0) {
    const next = Math.floor(rest / 128);
    target[at++] = (rest % 128) | (next > 0 ? 0x80 : 0);
    rest = next;
  }
  return at;
}

/** Writes an ofs-delta's base distance (which follows type and size) at `start`. @returns the end. */
export function encodeBaseDistance(target: Uint8Array, start: number, distance: number): number {
  const length = baseDistanceBytes(distance);
  let rest = distance;
  target[start + length - 1] = rest % 128;
  for (let at = start + length - 2; at >= start; at--) {
    rest = Math.floor(rest / 128) - 1;
    target[at] = 0x80 | (rest % 128);
  }
  return start + length;
}

/** Number of bytes that {@link encodeBaseDistance} writes. */
export function baseDistanceBytes(distance: number): number {
  let length = 1;
  for (let rest = Math.floor(distance / 128); rest > 0; rest = Math.floor((rest - 1) / 128)) length++;
  return length;
}

/** One entry of a pack. */
export interface PackEntry {
  /** Type number: 1–4 an object, 6 ofs-delta, 7 ref-delta. */
  readonly type: number;
  /** Inflated bytes of the object or the delta. */
  readonly size: number;
  /** Offset of the entry. */
  readonly start: number;
  /** Offset of its compressed data. */
  readonly dataStart: number;
  /** Offset after its compressed data: the start of the next entry or of the trailer. */
  readonly end: number;
  /** Pack position of a delta's base, in the same pack; -1 for an object. */
  readonly base: number;
}
