import { crc32 } from "node:zlib";
import { BaseCache, type RawObject } from "./base-cache.ts";
import { applyDelta, DeltaHeader } from "./delta.ts";
import { GitStoreError } from "../errors.ts";
import { createInflater, inflateError } from "./inflate.ts";
import { oidBytes, OFS_DELTA, REF_DELTA } from "../object-format.ts";
import { EntryHeader, MAX_ENTRY_HEADER_BYTES, type PackEntry } from "./pack-entry.ts";
import type { Pack } from "./pack.ts";
import { PageCache } from "./page-cache.ts";

/** Maximum size of an object that is read into memory, bytes. */
export const MAX_READ_OBJECT_BYTES = 2 ** 31;

/** Maximum bytes of both sizes at the start of a delta: two varints below 2^53, 8 bytes each. */
const DELTA_SIZES_BYTES = 20;

/** Maximum size of an object of a chain that is held in reused memory, bytes. */
const MAX_PASSING_BYTES = 1024 * 1024;

/**
 * Reads objects of packs synchronously, through a page cache and a cache of delta bases, both limited.
 * Each thread needs a reader of its own over the same packs.
 */
export class PackReader {
  readonly #pages: PageCache;
  readonly #bases: BaseCache;
  readonly #inflater = createInflater();
  readonly #header = new EntryHeader();
  readonly #deltaHeader = new DeltaHeader();
  #delta = Buffer.allocUnsafeSlow(64 * 1024);
  /** Memory for the objects of a chain that are not cached: a base, and the result of the delta on it, by turns. */
  readonly #passing = [Buffer.alloc(0), Buffer.alloc(0)];

  constructor(pages: PageCache = new PageCache(), bases: BaseCache = new BaseCache()) {
    this.#pages = pages;
    this.#bases = bases;
  }

  /**
   * Reads the entry at a pack position, without its data.
   *
   * @throws {GitStoreError} `bad_entry`, `missing_base`, `truncated`
   */
  entry(pack: Pack, position: number): PackEntry {
    if (pack.loose !== undefined) return pack.loose.entry(position);
    const { offsets } = pack.order;
    const start = offsets[position]!;
    const end = offsets[position + 1]!;
    const room = Math.min(MAX_ENTRY_HEADER_BYTES, end - start);
    const at = this.#pages.locate(pack, start, room);
    const bytes = this.#pages.bytes;
    const header = this.#header;
    if (!header.decode(bytes, at, at + room, oidBytes(pack.format))) {
      throw new GitStoreError("truncated", `read ${pack.path}: entry at ${start} ends in its header`, {
        path: pack.path,
        offset: start,
      });
    }
    let base = -1;
    if (header.type === OFS_DELTA) base = pack.order.positionAt(start - header.baseDistance);
    else if (header.type === REF_DELTA) base = pack.find(bytes, header.baseOidStart);
    if (base < 0 && header.type >= OFS_DELTA) {
      throw new GitStoreError(
        "missing_base",
        `read ${pack.path}: the base of the delta at ${start} is not in it`,
        {
          path: pack.path,
          offset: start,
        },
      );
    }
    return { type: header.type, size: header.size, start, dataStart: start + header.length, end, base };
  }

  /**
   * Reads the object at a pack position. It checks the CRC-32 of every entry that the object is built from. It does not
   * check the id, because packs are hashed when they are received. `ObjectDatabase.read` checks the id.
   *
   * @param passing whether only the object and its direct base are cached, because the reader needs no other version of
   *   the object. A long chain then allocates two buffers, not one for each delta.
   * @throws {GitStoreError} for a corrupt pack
   */
  read(pack: Pack, position: number, passing = false): RawObject {
    const chain: PackEntry[] = [];
    const chainPositions: number[] = [];
    let at = position;
    let object: RawObject | undefined;
    while ((object = this.#bases.get(key(pack, at))) === undefined) {
      const entry = this.entry(pack, at);
      if (entry.size > MAX_READ_OBJECT_BYTES) throw tooLarge(pack, entry);
      if (entry.base < 0) {
        object = { type: entry.type, content: this.inflated(pack, at, entry) };
        this.#bases.set(key(pack, at), object);
        break;
      }
      chain.push(entry);
      chainPositions.push(at);
      if (chain.length > pack.count) throw endless(pack, entry);
      at = entry.base;
    }
    for (let link = chain.length - 1; link >= 0; link--) {
      const isKept = !passing || link < 2;
      object = this.#apply(pack, chainPositions[link]!, chain[link]!, object, isKept ? -1 : link % 2);
      if (isKept) this.#bases.set(key(pack, chainPositions[link]!), object);
    }
    return object;
  }

  /** Returns the inflated bytes of an entry, of which the CRC-32 is checked. @throws {GitStoreError} for a corrupt pack */
  inflated(pack: Pack, position: number, entry: PackEntry): Buffer {
    if (pack.loose !== undefined) return pack.loose.read(position).content;
    const content = Buffer.allocUnsafe(entry.size + 1);
    this.#inflate(pack, position, entry, content);
    return content.subarray(0, entry.size);
  }

  /** Returns type number and size of the object at a pack position, without inflating it. */
  info(pack: Pack, position: number): { type: number; size: number } {
    return { type: this.typeOf(pack, position), size: this.sizeOf(pack, position) };
  }

  /** Returns the size of the object at a pack position. It inflates only the start of a delta. */
  sizeOf(pack: Pack, position: number): number {
    const entry = this.entry(pack, position);
    if (entry.base < 0) return entry.size;
    const room = entry.end - entry.dataStart;
    const at = this.#pages.locate(pack, entry.dataStart, room);
    const sizes = this.#delta;
    const count = this.#inflater.prefix(this.#pages.bytes, at, at + room, sizes, DELTA_SIZES_BYTES);
    if (count < 0) throw inflateError(count, { path: pack.path, offset: entry.start });
    this.#deltaHeader.decode(sizes, 0, count);
    return this.#deltaHeader.resultSize;
  }

  /** Returns the type number of the object at a pack position. It reads only the headers of the delta chain. */
  typeOf(pack: Pack, position: number): number {
    let entry = this.entry(pack, position);
    for (let links = 0; entry.base >= 0; links++) {
      if (links > pack.count) throw endless(pack, entry);
      entry = this.entry(pack, entry.base);
    }
    return entry.type;
  }

  /** Copies bytes of the pack, for instance an entry's compressed data. */
  copy(pack: Pack, offset: number, target: Buffer, targetStart: number, length: number): void {
    this.#pages.copy(pack, offset, target, targetStart, length);
  }

  /** Drops the cached data of a pack before it is closed. */
  forget(pack: Pack): void {
    this.#pages.forget(pack);
    this.#bases.clear();
  }

  /** Inflates an entry. The CRC-32 also covers the header, which names the base and is not part of the zlib checksum. */
  #inflate(pack: Pack, position: number, entry: PackEntry, output: Buffer): void {
    const { start, dataStart, end } = entry;
    const at = this.#pages.locate(pack, start, end - start);
    const { bytes } = this.#pages;
    const { index, order } = pack;
    if (crc32(bytes.subarray(at, at + end - start)) !== index.crcAt(order.indexPositions[position]!)) {
      throw damaged(pack, entry);
    }
    const data = at + dataStart - start;
    const used = this.#inflater.inflate({
      input: bytes,
      start: data,
      end: at + end - start,
      output,
      outputStart: 0,
      size: entry.size,
    });
    if (used < 0) throw inflateError(used, { path: pack.path, offset: entry.start });
  }

  /** @param slot number of the passing buffer that takes the result; -1: memory of its own */
  #apply(pack: Pack, position: number, entry: PackEntry, base: RawObject, slot: number): RawObject {
    if (this.#delta.length <= entry.size)
      this.#delta = Buffer.allocUnsafeSlow(Math.ceil(entry.size * 1.25) + 1);
    this.#inflate(pack, position, entry, this.#delta);
    const header = this.#deltaHeader;
    header.decode(this.#delta, 0, entry.size);
    if (header.resultSize > MAX_READ_OBJECT_BYTES) throw tooLarge(pack, entry);
    const content =
      slot < 0 ? Buffer.allocUnsafe(header.resultSize) : this.#passingBuffer(slot, header.resultSize);
    applyDelta({
      header,
      delta: this.#delta,
      deltaEnd: entry.size,
      base: base.content,
      baseStart: 0,
      baseSize: base.content.length,
      result: content,
      resultStart: 0,
    });
    return { type: base.type, content };
  }

  #passingBuffer(slot: number, size: number): Buffer {
    // The reader lives long, so it keeps no large memory.
    if (size > MAX_PASSING_BYTES) return Buffer.allocUnsafe(size);
    if (this.#passing[slot]!.length < size) {
      this.#passing[slot] = Buffer.allocUnsafeSlow(Math.min(size * 2, MAX_PASSING_BYTES));
    }
    return this.#passing[slot]!.subarray(0, size);
  }
}

/** Cache key of an object. Pack positions have 32 bits, so the sum is exact for two million packs. */
function key(pack: Pack, position: number): number {
  return pack.id * 0x1_0000_0000 + position;
}

function tooLarge(pack: Pack, entry: PackEntry): GitStoreError {
  return new GitStoreError(
    "too_large",
    `read ${pack.path}: the object at ${entry.start} is too large for memory`,
    {
      path: pack.path,
      offset: entry.start,
    },
  );
}

function damaged({ path }: Pack, { start }: PackEntry): GitStoreError {
  return new GitStoreError("corrupt_object", `read ${path}: the entry at ${start} is damaged`, {
    path,
    offset: start,
  });
}

function endless(pack: Pack, entry: PackEntry): GitStoreError {
  return new GitStoreError("delta_cycle", `read ${pack.path}: the delta chain at ${entry.start} has no end`, {
    path: pack.path,
    offset: entry.start,
  });
}
