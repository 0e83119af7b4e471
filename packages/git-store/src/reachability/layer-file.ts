import { createHash } from "node:crypto";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError, corruptIn } from "../errors.ts";
import { hashNumber, oidBytes } from "../object-format.ts";
import type { TypeBitmaps } from "./bitmap-file.ts";
import type { CompressedBitmap } from "./bitmap-store.ts";
import { bitmapLength, decodeEwah, encodeEwah, skipEwah } from "./ewah.ts";

const corrupt = corruptIn("corrupt_index", "a .reach file");

/**
 * The `pack-<checksum>.reach` file of a pack that was added to earlier packs. A `.bitmap` file covers only one pack that
 * is closed under reachability. A `.reach` file covers a list of packs, and belongs to the last of them:
 *
 * - `RCHL`, 1 byte version (1), 1 byte hash number (as in `.rev`), 2 bytes zero
 * - 4 bytes number of packs, then for each its checksum and 4 bytes number of objects
 * - 4 EWAH bitmaps over the positions of the last pack: its commits, trees, blobs, tags
 * - 4 bytes number of entries, then for each 4 bytes object number of a commit, 4 bytes object number of another or
 *   `ffffffff`, and an EWAH bitmap over the numbers of all these packs (see object-numbers.ts): the objects that
 *   the commit reaches, including itself; with another commit the exclusive or of both sets
 * - checksum of all bytes before it
 *
 * All numbers are big-endian. The file can be rebuilt from the packs at any time.
 */
const SIGNATURE = "RCHL";
const VERSION = 1;
const HEADER_BYTES = 8;
const ENTRY_HEADER_BYTES = 8;
const NO_BASE = 0xffff_ffff;

/** The packs that a layer refers to, in the order of their numbers. */
export interface LayerPack {
  readonly checksum: Uint8Array;
  readonly objectCount: number;
}

export interface Layer {
  readonly format: ObjectFormat;
  readonly packs: readonly LayerPack[];
  readonly types: TypeBitmaps;
  /** Bitmaps by object number of the commit. */
  readonly commits: ReadonlyMap<number, CompressedBitmap>;
}

export function encodeLayer(layer: Layer): Buffer {
  const width = oidBytes(layer.format);
  const header = Buffer.alloc(HEADER_BYTES + 4);
  header.write(SIGNATURE, "latin1");
  header.writeUInt8(VERSION, 4);
  header.writeUInt8(hashNumber(layer.format), 5);
  header.writeUInt32BE(layer.packs.length, HEADER_BYTES);
  const parts: Uint8Array[] = [header];
  for (const { checksum, objectCount } of layer.packs) {
    const row = Buffer.alloc(width + 4);
    row.set(checksum);
    row.writeUInt32BE(objectCount, width);
    parts.push(row);
  }
  const own = layer.packs.at(-1)?.objectCount ?? 0;
  const { commits, trees, blobs, tags } = layer.types;
  for (const type of [commits, trees, blobs, tags]) parts.push(encodeEwah(type, own));
  const count = Buffer.alloc(4);
  count.writeUInt32BE(layer.commits.size);
  parts.push(count);
  for (const [number, { ewah, base }] of layer.commits) {
    const head = Buffer.alloc(ENTRY_HEADER_BYTES);
    head.writeUInt32BE(number);
    head.writeUInt32BE(base ?? NO_BASE, 4);
    parts.push(head, ewah);
  }
  const body = Buffer.concat(parts);
  return Buffer.concat([body, createHash(layer.format).update(body).digest()]);
}

/**
 * Decodes the file; the commits' bitmaps are views of `bytes`.
 *
 * @throws {GitStoreError} `corrupt_index` (inconsistent content), `wrong_trailer`, `truncated`
 */
export function decodeLayer(bytes: Buffer, format: ObjectFormat): Layer {
  const width = oidBytes(format);
  const end = bytes.length - width;
  if (end < HEADER_BYTES + 8)
    throw new GitStoreError("truncated", "Cannot read a .reach file: it is cut short");
  if (bytes.toString("latin1", 0, 4) !== SIGNATURE || bytes[4] !== VERSION) {
    throw corrupt("not a reach file of version 1");
  }
  if (bytes[5] !== hashNumber(format)) throw corrupt("it has another object format");
  if (!createHash(format).update(bytes.subarray(0, end)).digest().equals(bytes.subarray(end))) {
    throw new GitStoreError("wrong_trailer", "Cannot read a .reach file: its checksum is wrong");
  }
  const packCount = bytes.readUInt32BE(HEADER_BYTES);
  let at = HEADER_BYTES + 4;
  if (packCount === 0 || at + packCount * (width + 4) + 4 > end)
    throw corrupt("its table of packs is cut short");
  const packs: LayerPack[] = [];
  let total = 0;
  for (let i = 0; i < packCount; i++, at += width + 4) {
    const objectCount = bytes.readUInt32BE(at + width);
    packs.push({ checksum: bytes.subarray(at, at + width), objectCount });
    total += objectCount;
  }
  const body = bytes.subarray(0, end);
  const own = packs.at(-1)!.objectCount;
  const next = (): Uint32Array => {
    const set = new Uint32Array(bitmapLength(own));
    at = decodeEwah(body, at, set);
    return set;
  };
  const types = { commits: next(), trees: next(), blobs: next(), tags: next() };
  if (at + 4 > end) throw corrupt("its entries are cut short");
  const entryCount = body.readUInt32BE(at);
  at += 4;
  const commits = new Map<number, CompressedBitmap>();
  for (let i = 0; i < entryCount; i++) {
    if (at + ENTRY_HEADER_BYTES > end) throw corrupt("its entries are cut short");
    const number = body.readUInt32BE(at);
    const base = body.readUInt32BE(at + 4);
    if (number >= total || (base !== NO_BASE && base >= total)) {
      throw corrupt("an entry names an object that is in none of the packs");
    }
    const start = at + ENTRY_HEADER_BYTES;
    at = skipEwah(body, start);
    commits.set(number, { ewah: body.subarray(start, at), base: base === NO_BASE ? undefined : base });
  }
  return { format, packs, types, commits };
}
