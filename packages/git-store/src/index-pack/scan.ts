import { createHash, type Hash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "../errors.ts";
import { freeBuffer } from "../free-buffer.ts";
import { createInflater, INCOMPLETE, inflateError, type InflateStream } from "../pack/inflate.ts";
import { HEADER_ROOM, oidBytes, OFS_DELTA, REF_DELTA, typeName } from "../object-format.ts";
import { createObjectHasher, type ObjectHasher } from "../object-hasher.ts";
import {
  decodePackHeader,
  EntryHeader,
  MAX_ENTRY_HEADER_BYTES,
  PACK_HEADER_BYTES,
} from "../pack/pack-entry.ts";
import type { Control } from "./control.ts";
import { atOffset } from "./failure.ts";
import { expandedLimit, type IndexPackLimits } from "./limits.ts";
import { PackSource } from "./pack-source.ts";
import {
  addChild,
  createTables,
  entryAt,
  linkWaiting,
  RefDeltaCollector,
  type PackTables,
  type RefDeltas,
} from "./tables.ts";

/** Objects of more bytes are inflated and hashed in pieces. */
const WHOLE_OBJECT_BYTES = 1024 * 1024;
/** Bytes of one piece. */
const PIECE_BYTES = 256 * 1024;
/** Margin above the bytes that are read ahead of a correct entry. */
const SLACK_BYTES = 8 * 1024 * 1024;

/** Result of one pass over a pack. */
export interface ScannedPack {
  readonly tables: PackTables;
  readonly refs: RefDeltas;
  /** Bytes of the pack, with header and trailer. */
  readonly packBytes: number;
  /** The trailer. */
  readonly checksum: Buffer;
  readonly deltas: number;
}

/**
 * Reads a pack once from front to back. It finds the start of each entry, inflates it, hashes undeltified objects,
 * checks the trailer, and builds the delta forest.
 *
 * @throws {GitStoreError} for any fault of a pack except the content of its deltas
 */
export function scanPack(fd: number, control: Control, options: ScanOptions): ScannedPack {
  return new Scanner(fd, control, options).scan();
}

export interface ScanOptions {
  readonly format: ObjectFormat;
  readonly limits: IndexPackLimits;
  readonly detectCollisions: boolean;
}

class Scanner {
  readonly #format: ObjectFormat;
  readonly #oidLength: number;
  readonly #limits: IndexPackLimits;
  readonly #hasher: ObjectHasher;
  readonly #control: Control;
  readonly #checksum: Hash;
  readonly #source: PackSource;
  readonly #inflater = createInflater();
  readonly #header = new EntryHeader();
  readonly #refs: RefDeltaCollector;
  /** Holds an object with room for its header in front. */
  #object: Buffer = Buffer.allocUnsafeSlow(HEADER_ROOM + 64 * 1024);
  #expanded = 0;
  #deltas = 0;

  constructor(fd: number, control: Control, { format, limits, detectCollisions }: ScanOptions) {
    this.#format = format;
    this.#hasher = createObjectHasher(format, detectCollisions);
    this.#oidLength = oidBytes(format);
    this.#limits = limits;
    this.#control = control;
    this.#refs = new RefDeltaCollector(format);
    const checksum = createHash(format);
    this.#checksum = checksum;
    this.#source = new PackSource(fd, control, (bytes) => checksum.update(bytes));
  }

  scan(): ScannedPack {
    const source = this.#source;
    source.ensure(PACK_HEADER_BYTES);
    const count = decodePackHeader(source.buffer.subarray(source.start, source.end));
    source.consume(PACK_HEADER_BYTES);
    if (count > this.#limits.objects) {
      throw new GitStoreError("too_large", `index pack: ${count} objects, limit ${this.#limits.objects}`);
    }
    const tables = createTables(this.#format, count);
    const oids = Buffer.from(tables.oids.buffer);
    for (let entry = 0; entry < count; entry++) {
      if ((entry & 1023) === 0) this.#control.check();
      const { offset } = source;
      try {
        tables.offsets[entry] = offset;
        this.#entry(tables, oids, entry, offset);
      } catch (error) {
        throw atOffset(error, offset);
      }
    }
    tables.offsets[count] = source.offset;
    const checksum = this.#trailer();
    const refs = this.#refs.sorted();
    growForest(tables, refs);
    source.free();
    freeBuffer(this.#object);
    return { tables, refs, packBytes: source.offset, checksum, deltas: this.#deltas };
  }

  #entry(tables: PackTables, oids: Buffer, entry: number, offset: number): void {
    const source = this.#source;
    const header = this.#header;
    source.ensure(MAX_ENTRY_HEADER_BYTES);
    if (!header.decode(source.buffer, source.start, source.end, this.#oidLength)) throw truncated(offset);
    const { type, size } = header;
    const isDelta = type >= OFS_DELTA;
    tables.types[entry] = type;
    if (type === OFS_DELTA) tables.nextSibling[entry] = this.#ofsBase(tables, entry, offset) + 1;
    else if (type === REF_DELTA) this.#refs.add(entry, source.buffer, header.baseOidStart);
    if (isDelta) this.#deltas++;
    const limit = isDelta ? this.#limits.deltaObjectBytes : this.#limits.objectBytes;
    this.#expanded += size;
    if (size > limit)
      throw new GitStoreError("too_large", `index pack: an object of ${size} bytes, limit ${limit}`);
    if (this.#expanded > expandedLimit(this.#limits, offset)) {
      throw new GitStoreError(
        "too_large",
        `index pack: its objects inflate to more than ${this.#expanded - size} bytes`,
      );
    }
    const { stream } = this.#inflater;
    if (size > WHOLE_OBJECT_BYTES && stream !== undefined) {
      this.#inflatePieces(stream, tables, oids, entry, offset);
      return;
    }
    const length = this.#inflateWhole(offset);
    tables.crcs[entry] = crc32(source.buffer.subarray(source.start, source.start + length));
    source.consume(length);
    if (!isDelta) {
      this.#hasher.hash({
        type,
        buffer: this.#object,
        start: HEADER_ROOM,
        size,
        target: oids,
        targetStart: entry * this.#oidLength,
      });
    }
  }

  /** Inflates the entry at the source's start to `#object`. @returns the entry's length */
  #inflateWhole(offset: number): number {
    const source = this.#source;
    const { size, length: headerLength } = this.#header;
    if (this.#object.length < HEADER_ROOM + size + 1) {
      this.#object = Buffer.allocUnsafeSlow(HEADER_ROOM + Math.ceil(size * 1.5) + 1);
    }
    for (;;) {
      const from = source.start + headerLength;
      const used = this.#inflater.inflate({
        input: source.buffer,
        start: from,
        end: source.end,
        output: this.#object,
        outputStart: HEADER_ROOM,
        size,
      });
      if (used >= 0) return headerLength + used;
      if (used !== INCOMPLETE) throw inflateError(used, { offset });
      // No compressor expands data this much. Without the check a stream of empty blocks would fill the memory.
      if (source.end - from > 4 * size + SLACK_BYTES) {
        throw new GitStoreError("corrupt_zlib", `inflate entry at offset ${offset}: it does not end`, {
          offset,
        });
      }
      // Doubles the input each time, because every retry starts again at the first byte.
      const had = source.end - source.start;
      source.ensure(had * 2);
      if (source.end - source.start === had) throw truncated(offset);
    }
  }

  /** Inflates a large entry in pieces, hashes it, and consumes it. */
  #inflatePieces(
    stream: InflateStream,
    tables: PackTables,
    oids: Buffer,
    entry: number,
    offset: number,
  ): void {
    const source = this.#source;
    const { type, size, length: headerLength } = this.#header;
    const isDelta = type >= OFS_DELTA;
    if (!isDelta) this.#hasher.begin(`${typeName(type)} ${size}\0`);
    if (this.#object.length < PIECE_BYTES) this.#object = Buffer.allocUnsafeSlow(PIECE_BYTES);
    const piece = this.#object.subarray(0, PIECE_BYTES);
    let crc = crc32(source.buffer.subarray(source.start, source.start + headerLength));
    source.consume(headerLength);
    let produced = 0;
    stream.begin();
    for (;;) {
      if (!source.ensure(1)) throw truncated(offset);
      if (!stream.step(source.buffer, source.start, source.end, piece)) throw inflateError(-1, { offset });
      // A stream that has ended reads nothing more. Before its end each step reads or writes something.
      if (stream.consumed === 0 && stream.produced === 0) break;
      produced += stream.produced;
      if (produced > size) break;
      const part = piece.subarray(0, stream.produced);
      if (!isDelta) this.#hasher.update(part);
      crc = crc32(source.buffer.subarray(source.start, source.start + stream.consumed), crc);
      source.consume(stream.consumed);
    }
    if (produced !== size) {
      const found = produced > size ? "more" : "fewer";
      throw new GitStoreError(
        "wrong_size",
        `inflate entry at offset ${offset}: gives ${found} bytes than its header says`,
        {
          offset,
        },
      );
    }
    tables.crcs[entry] = crc;
    if (!isDelta) this.#hasher.end(oids, entry * this.#oidLength);
  }

  #ofsBase(tables: PackTables, entry: number, offset: number): number {
    const distance = this.#header.baseDistance;
    if (distance === 0) {
      throw new GitStoreError(
        "delta_cycle",
        `index pack: the delta at offset ${offset} names itself as base`,
        {
          offset,
        },
      );
    }
    const base = entryAt(tables.offsets, entry, offset - distance);
    if (base < 0) {
      throw new GitStoreError(
        "missing_base",
        `index pack: no entry starts ${distance} bytes before the delta`,
        {
          offset,
        },
      );
    }
    return base;
  }

  #trailer(): Buffer {
    const source = this.#source;
    if (!source.ensure(this.#oidLength)) {
      throw new GitStoreError("truncated", `index pack: it ends in its trailer`, { offset: source.offset });
    }
    source.flush();
    const trailer = Buffer.from(source.buffer.subarray(source.start, source.start + this.#oidLength));
    if (!this.#checksum.digest().equals(trailer)) {
      throw new GitStoreError("wrong_trailer", "index pack: its checksum is not that of its content");
    }
    source.consume(this.#oidLength);
    if (source.ensure(1)) {
      throw new GitStoreError("trailing_garbage", "index pack: bytes follow its trailer", {
        offset: source.offset,
      });
    }
    return trailer;
  }
}

/** Builds the lists of children. During the scan, `nextSibling` of an ofs-delta held its base. */
function growForest(tables: PackTables, refs: RefDeltas): void {
  const { types, nextSibling } = tables;
  // Iterates backwards, so that the children of a base are in pack order.
  for (let entry = tables.count - 1; entry >= 0; entry--) {
    if (types[entry] === OFS_DELTA) addChild(tables, nextSibling[entry]! - 1, entry);
  }
  if (refs.count === 0) return;
  for (let entry = 0; entry < tables.count; entry++) {
    if (types[entry]! < OFS_DELTA) linkWaiting(tables, refs, entry);
  }
}

function truncated(offset: number): GitStoreError {
  return new GitStoreError("truncated", `index pack: it ends within the entry at offset ${offset}`, {
    offset,
  });
}
