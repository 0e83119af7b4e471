import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { FileSums, SUM_BLOCK_BYTES } from "./block-sums.ts";

/**
 * The end of a response file, after the bytes that are sent:
 *
 * - 4 bytes CRC-32 of each block of {@link SUM_BLOCK_BYTES}
 * - `SRSP`, 4 bytes size of a block, 8 bytes number of bytes before the table
 * - 32 bytes SHA-256 of code host, repository and request: the file answers this request and no other
 * - 4 bytes CRC-32 of table and footer up to here
 *
 * All numbers are big-endian.
 */
const SIGNATURE = "SRSP";
const IDENTITY_BYTES = 32;
const FOOTER_BYTES = 4 + 4 + 8 + IDENTITY_BYTES + 4;
/** Bytes of the table for each block. */
const SUM_BYTES = 4;

/** Identity of the request that a file answers, for its trailer. */
export function responseIdentity(hostUrl: string, repository: string, key: string): Buffer {
  return createHash("sha256").update(`${hostUrl}\0${repository}\0${key}`).digest();
}

export function encodeTrailer({ size, values }: FileSums, identity: Buffer): Buffer {
  const out = Buffer.alloc(values.length * SUM_BYTES + FOOTER_BYTES);
  for (const [at, value] of values.entries()) out.writeUInt32BE(value, at * SUM_BYTES);
  let at = values.length * SUM_BYTES;
  at += out.write(SIGNATURE, at, "latin1");
  at = out.writeUInt32BE(SUM_BLOCK_BYTES, at);
  at = out.writeBigUInt64BE(BigInt(size), at);
  at += identity.copy(out, at);
  out.writeUInt32BE(crc32(out.subarray(0, at)), at);
  return out;
}

/** Bytes of the trailer of a file of this size, or undefined: no response file has it. */
export function trailerBytes(fileBytes: number): number | undefined {
  const rest = fileBytes - FOOTER_BYTES;
  // size + 4 * ceil(size / block) = rest
  const blocks = Math.ceil(rest / (SUM_BLOCK_BYTES + SUM_BYTES));
  return blocks > 0 && rest - blocks * SUM_BYTES > 0 ? blocks * SUM_BYTES + FOOTER_BYTES : undefined;
}

/** @returns undefined if these are not the last bytes of a file of this size that answers this request */
export function decodeTrailer(bytes: Buffer, fileBytes: number, identity: Buffer): FileSums | undefined {
  const end = bytes.length - SUM_BYTES;
  const footer = bytes.length - FOOTER_BYTES;
  if (footer < SUM_BYTES || crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) return undefined;
  const size = fileBytes - bytes.length;
  const isOurs =
    bytes.toString("latin1", footer, footer + 4) === SIGNATURE &&
    bytes.readUInt32BE(footer + 4) === SUM_BLOCK_BYTES &&
    bytes.readBigUInt64BE(footer + 8) === BigInt(size) &&
    bytes.subarray(footer + 16, end).equals(identity);
  if (!isOurs) return undefined;
  const values = Uint32Array.from({ length: footer / SUM_BYTES }, (_, at) =>
    bytes.readUInt32BE(at * SUM_BYTES),
  );
  return new FileSums(size, values);
}
