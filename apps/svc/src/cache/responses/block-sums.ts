import { crc32 } from "node:zlib";

/** Bytes that one checksum covers. They are few, so that the smallest piece that is sent can be checked separately. */
export const SUM_BLOCK_BYTES = 128 * 1024;

/** Stored bytes cannot be read, or differ from the written ones. */
export class StoredDataDamaged extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = "StoredDataDamaged";
  }
}

/** The CRC-32 of each block of a file, known from the bytes as they arrived, not from the disk. */
export interface BlockSums {
  /**
   * Compares bytes with their checksums.
   *
   * @param offset of the bytes in the file: the start of a block
   * @param bytes whole blocks; the last one may be the end of the file
   */
  matches(bytes: Buffer, offset: number): boolean;
}

/** Checksums of a whole file. */
export class FileSums implements BlockSums {
  /** Bytes that they cover. */
  readonly size: number;
  readonly values: Uint32Array;

  constructor(size: number, values: Uint32Array) {
    this.size = size;
    this.values = values;
  }

  matches(bytes: Buffer, offset: number): boolean {
    return matches(this.values, bytes, offset);
  }
}

/** Makes the checksums of a file as its bytes arrive. Those of whole blocks can be used before the end. */
export class GrowingSums implements BlockSums {
  readonly #values: number[] = [];
  #size = 0;
  /** Checksum of the block that is not complete yet. */
  #crc = 0;

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) {
      const end = Math.min(bytes.length, at + SUM_BLOCK_BYTES - (this.#size % SUM_BLOCK_BYTES));
      this.#crc = crc32(bytes.subarray(at, end), this.#crc);
      this.#size += end - at;
      at = end;
      if (this.#size % SUM_BLOCK_BYTES !== 0) continue;
      this.#values.push(this.#crc);
      this.#crc = 0;
    }
  }

  matches(bytes: Buffer, offset: number): boolean {
    return matches(this.#values, bytes, offset);
  }

  /** The checksums of all bytes so far. */
  finish(): FileSums {
    const last = this.#size % SUM_BLOCK_BYTES === 0 ? [] : [this.#crc];
    return new FileSums(this.#size, Uint32Array.from([...this.#values, ...last]));
  }
}

function matches(values: ArrayLike<number>, bytes: Buffer, offset: number): boolean {
  let block = offset / SUM_BLOCK_BYTES;
  for (let at = 0; at < bytes.length; at += SUM_BLOCK_BYTES, block++) {
    if (crc32(bytes.subarray(at, at + SUM_BLOCK_BYTES)) !== values[block]) return false;
  }
  return true;
}
