import { createHash, type Hash } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import type { ObjectFormat } from "@devplat/git-protocol";
import { hashNumber, oidBytes } from "../object-format.ts";
import { INDEX_SIGNATURE, INDEX_VERSION, LARGE_OFFSET_BIT } from "../pack/pack-index.ts";
import { REVERSE_SIGNATURE, REVERSE_VERSION } from "../pack/pack-order.ts";
import type { PackTables } from "./tables.ts";

/** Bytes of the write buffer. */
const BUFFER_BYTES = 256 * 1024;

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
    for (const entry of order) out.bytes(oids, entry * length, length);
    for (const entry of order) out.u32(crcs[entry]!);
    const large: number[] = [];
    for (const entry of order) {
      const offset = offsets[entry]!;
      if (offset < largeFrom) out.u32(offset);
      else out.u32(LARGE_OFFSET_BIT + large.push(offset) - 1);
    }
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
    for (const position of positions) out.u32(position);
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

  #flush(): void {
    const bytes = this.#buffer.subarray(0, this.#used);
    this.#hash.update(bytes);
    this.#write(bytes);
    this.#used = 0;
  }

  #write(bytes: Buffer): void {
    for (let done = 0; done < bytes.length;) done += writeSync(this.#fd, bytes, done);
  }
}
