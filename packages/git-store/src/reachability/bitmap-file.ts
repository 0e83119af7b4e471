import { createHash } from "node:crypto";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError, corruptIn } from "../errors.ts";
import { oidBytes } from "../object-format.ts";
import { bitmapLength, decodeEwah, encodeEwah, skipEwah } from "./ewah.ts";

const corrupt = corruptIn("corrupt_index", "a .bitmap file");

/**
 * The `.bitmap` file of a pack (gitformat-bitmap, version 1). It holds the objects that some commits reach. Bit `i` is
 * the i-th object in pack order. The pack must be closed under reachability.
 */
const SIGNATURE = "BITM";
const VERSION = 1;
const FULL_DAG = 0x1;
const HASH_CACHE = 0x4;
const LOOKUP_TABLE = 0x10;
const KNOWN_FLAGS = FULL_DAG | HASH_CACHE | LOOKUP_TABLE;
const HEADER_BYTES = 12;
/** Maximum distance of an entry to the earlier entry that it is stored as a difference to; the same limit as git's. */
const MAX_XOR_OFFSET = 160;

/** The objects of a pack by type: one bitmap for each type, in pack order. */
export interface TypeBitmaps {
  readonly commits: Uint32Array;
  readonly trees: Uint32Array;
  readonly blobs: Uint32Array;
  readonly tags: Uint32Array;
}

/** A commit and the objects that it reaches, including itself. */
export interface CommitBitmap {
  /** The commit's position in the `.idx` file (objects sorted by id). */
  readonly indexPosition: number;
  readonly reaches: Uint32Array;
}

export interface BitmapFileContent {
  readonly format: ObjectFormat;
  /** Checksum in the trailer of the pack. */
  readonly packChecksum: Uint8Array;
  readonly objectCount: number;
  readonly types: TypeBitmaps;
  readonly commits: readonly CommitBitmap[];
}

/**
 * Encodes the file. A commit's bitmap is stored as the difference to the previous one if that is smaller, so `commits`
 * should list neighbours in history next to each other.
 */
export function encodeBitmapFile(content: BitmapFileContent): Buffer {
  const { objectCount: count, types } = content;
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(SIGNATURE, "latin1");
  header.writeUInt16BE(VERSION, 4);
  header.writeUInt16BE(FULL_DAG, 6);
  header.writeUInt32BE(content.commits.length, 8);
  const parts: Uint8Array[] = [header, content.packChecksum];
  for (const type of [types.commits, types.trees, types.blobs, types.tags])
    parts.push(encodeEwah(type, count));
  const difference = new Uint32Array(bitmapLength(count));
  let previous: Uint32Array | undefined;
  for (const { indexPosition, reaches } of content.commits) {
    let ewah = encodeEwah(reaches, count);
    let xorOffset = 0;
    if (previous !== undefined) {
      for (let i = 0; i < difference.length; i++) difference[i] = (reaches[i] ?? 0) ^ (previous[i] ?? 0);
      const xored = encodeEwah(difference, count);
      if (xored.length < ewah.length) [ewah, xorOffset] = [xored, 1];
    }
    const head = Buffer.alloc(6);
    head.writeUInt32BE(indexPosition, 0);
    head.writeUInt8(xorOffset, 4);
    parts.push(head, ewah);
    previous = reaches;
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([body, createHash(content.format).update(body).digest()]);
}

/** A decoded `.bitmap` file. The bitmap of a commit is decoded on demand. */
export class BitmapFile {
  readonly #bytes: Buffer;
  readonly #objectCount: number;
  readonly #entries: readonly {
    readonly indexPosition: number;
    readonly xorOffset: number;
    readonly at: number;
  }[];
  readonly #byPosition = new Map<number, number>();
  readonly types: TypeBitmaps;
  readonly packChecksum: Buffer;

  /**
   * @param objectCount number of objects in the pack
   * @throws GitStoreError `corrupt_index`, `wrong_trailer`, `truncated`
   */
  constructor(bytes: Buffer, objectCount: number, format: ObjectFormat) {
    const width = oidBytes(format);
    const end = bytes.length - width;
    if (end < HEADER_BYTES + width)
      throw new GitStoreError("truncated", "Cannot read a .bitmap file: it is cut short");
    if (bytes.toString("latin1", 0, 4) !== SIGNATURE || bytes.readUInt16BE(4) !== VERSION) {
      throw corrupt("not a bitmap file of version 1");
    }
    const flags = bytes.readUInt16BE(6);
    if ((flags & ~KNOWN_FLAGS) !== 0) throw corrupt("it has an unknown flag");
    if (!createHash(format).update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end))) {
      throw new GitStoreError("wrong_trailer", "Cannot read a .bitmap file: its checksum is wrong");
    }
    this.#bytes = bytes;
    this.#objectCount = objectCount;
    this.packChecksum = bytes.subarray(HEADER_BYTES, HEADER_BYTES + width);
    const body = bytes.subarray(0, end);
    let at = HEADER_BYTES + width;
    const next = (): Uint32Array => {
      const bitmap = new Uint32Array(bitmapLength(objectCount));
      at = decodeEwah(body, at, bitmap);
      return bitmap;
    };
    this.types = { commits: next(), trees: next(), blobs: next(), tags: next() };
    const entries = [];
    for (let i = 0; i < bytes.readUInt32BE(8); i++) {
      if (at + 6 > end) throw corrupt("its entries are cut short");
      const indexPosition = body.readUInt32BE(at);
      const xorOffset = body.readUInt8(at + 4);
      if (indexPosition >= objectCount) throw corrupt("an entry names an object that is not in the pack");
      if (xorOffset > i || xorOffset > MAX_XOR_OFFSET) throw corrupt("an entry refers to a missing entry");
      entries.push({ indexPosition, xorOffset, at: at + 6 });
      this.#byPosition.set(indexPosition, i);
      at = skipEwah(body, at + 6);
    }
    this.#entries = entries;
  }

  /** Index positions of the commits with a bitmap, in the order of the file. */
  get commits(): readonly number[] {
    return this.#entries.map((entry) => entry.indexPosition);
  }

  /** Adds the objects that a commit reaches to `target`. @returns false when the commit has no bitmap */
  addReachable(indexPosition: number, target: Uint32Array): boolean {
    const number = this.#byPosition.get(indexPosition);
    if (number === undefined) return false;
    const reaches = this.#unpack(number);
    for (let i = 0; i < reaches.length; i++) target[i] = (target[i] ?? 0) | (reaches[i] ?? 0);
    return true;
  }

  /** Decodes an entry: the exclusive or of its words and the words of all entries in its chain. */
  #unpack(number: number): Uint32Array {
    const bitmap = new Uint32Array(bitmapLength(this.#objectCount));
    for (let i = number; ;) {
      const entry = this.#entries[i];
      if (entry === undefined) throw corrupt("an entry refers to a missing entry");
      decodeEwah(this.#bytes, entry.at, bitmap, "xor");
      if (entry.xorOffset === 0) return bitmap;
      i -= entry.xorOffset;
    }
  }
}
