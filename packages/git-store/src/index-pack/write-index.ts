import { createHash, type Hash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { endianness } from "node:os";
import type { ObjectFormat } from "@devplat/git-protocol";
import { hashNumber, oidBytes } from "../object-format.ts";
import { INDEX_SIGNATURE, INDEX_VERSION, LARGE_OFFSET_BIT } from "../pack/pack-index.ts";
import { REVERSE_SIGNATURE, REVERSE_VERSION } from "../pack/pack-order.ts";
import type { PackTables } from "./tables.ts";

/** Bytes of the buffer for single numbers: the header and the table of first bytes. */
const BUFFER_BYTES = 4096;
/** Ids that are written together. */
const IDS_AT_ONCE = 16_384;

/**
 * Writes an `.idx` file, version 2, with the same bytes as `git index-pack`.
 *
 * @param order entry numbers by id
 * @param largeFrom offsets from here on are in the table of 64-bit offsets; 2^31 except in tests
 */
export function writeIndex(
  path: string,
  tables: PackTables,
  order: Uint32Array,
  packChecksum: Buffer,
  largeFrom: number = LARGE_OFFSET_BIT,
): void {
  const { format, count, oids, crcs, offsets } = tables;
  const length = oidBytes(format);
  writeHashed(path, format, (out) => {
    out.u32(INDEX_SIGNATURE);
    out.u32(INDEX_VERSION);
    let total = 0;
    for (let byte = 0; byte < 256; byte++) {
      while (total < count && oids[order[total]! * length]! <= byte) total++;
      out.u32(total);
    }
    out.ids(oids, order, length);
    const numbers = new Uint32Array(count);
    for (let at = 0; at < count; at++) numbers[at] = crcs[order[at]!]!;
    out.u32s(numbers);
    const large: number[] = [];
    for (let at = 0; at < count; at++) {
      const offset = offsets[order[at]!]!;
      numbers[at] = offset < largeFrom ? offset : LARGE_OFFSET_BIT + large.push(offset) - 1;
    }
    out.u32s(numbers);
    for (const offset of large) {
      out.u32(Math.floor(offset / 0x1_0000_0000));
      out.u32(offset % 0x1_0000_0000);
    }
    out.bytes(packChecksum, 0, length);
  });
}

/** Writes a `.rev` file: the index positions of the entries in pack order. */
export function writeReverseIndex(
  path: string,
  tables: PackTables,
  order: Uint32Array,
  packChecksum: Buffer,
): void {
  const { format, count } = tables;
  const positions = new Uint32Array(count);
  for (let position = 0; position < count; position++) positions[order[position]!] = position;
  writeHashed(path, format, (out) => {
    out.u32(REVERSE_SIGNATURE);
    out.u32(REVERSE_VERSION);
    out.u32(hashNumber(format));
    out.u32s(positions);
    out.bytes(packChecksum, 0, packChecksum.length);
  });
}

/** Writes a new file that ends with the hash of its content. */
function writeHashed(path: string, format: ObjectFormat, write: (out: HashedWriter) => void): void {
  const fd = openSync(path, "wx", 0o444);
  try {
    const out = new HashedWriter(fd, format);
    write(out);
    out.end();
  } finally {
    closeSync(fd);
  }
}

class HashedWriter {
  readonly #fd: number;
  readonly #hash: Hash;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;

  constructor(fd: number, format: ObjectFormat) {
    this.#fd = fd;
    this.#hash = createHash(format);
  }

  u32(value: number): void {
    if (this.#used + 4 > BUFFER_BYTES) this.#flush();
    this.#used = this.#buffer.writeUInt32BE(value, this.#used);
  }

  /** Appends numbers. Changes their byte order in place. */
  u32s(values: Uint32Array): void {
    const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
    if (endianness() === "LE") bytes.swap32();
    this.#append(bytes);
  }

  /** Appends the ids of a table in an order. It copies words, because ids have a multiple of four bytes. */
  ids(table: Uint8Array, order: Uint32Array, length: number): void {
    const words = new Uint32Array(table.buffer, table.byteOffset, table.byteLength / 4);
    const perId = length / 4;
    const piece = new Uint32Array(IDS_AT_ONCE * perId);
    for (let start = 0; start < order.length; start += IDS_AT_ONCE) {
      const end = Math.min(order.length, start + IDS_AT_ONCE);
      let to = 0;
      for (let at = start; at < end; at++) {
        const from = order[at]! * perId;
        for (let word = 0; word < perId; word++) piece[to++] = words[from + word]!;
      }
      this.#append(Buffer.from(piece.buffer, 0, to * 4));
    }
  }

  /** Appends at most {@link BUFFER_BYTES}. */
  bytes(source: Uint8Array, start: number, length: number): void {
    if (this.#used + length > BUFFER_BYTES) this.#flush();
    for (let i = 0; i < length; i++) this.#buffer[this.#used + i] = source[start + i]!;
    this.#used += length;
  }

  end(): void {
    this.#flush();
    this.#write(this.#hash.digest());
  }

  #append(bytes: Buffer): void {
    this.#flush();
    this.#hash.update(bytes);
    this.#write(bytes);
  }

  #flush(): void {
    const bytes = this.#buffer.subarray(0, this.#used);
    this.#used = 0;
    this.#hash.update(bytes);
    this.#write(bytes);
  }

  #write(bytes: Buffer): void {
    for (let done = 0; done < bytes.length;) done += writeSync(this.#fd, bytes, done);
  }
}
