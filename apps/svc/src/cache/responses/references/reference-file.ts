import { crc32 } from "node:zlib";
import { FileSums, SUM_BLOCK_BYTES } from "../block-sums.ts";
import { PacketLayout } from "./packet-layout.ts";

/**
 * A reference file: a stored response whose pack is in the mirror.
 *
 * - the encoded {@link PacketLayout} of the response
 * - 4 bytes CRC-32 of each block of {@link SUM_BLOCK_BYTES} of the response
 * - `SREF`, 4 bytes size of a block, 8 bytes number of bytes of the response, 8 bytes of the pack
 * - 1 byte length of the checksum of the pack, and the checksum in 32 bytes, filled up with zeros
 * - 32 bytes SHA-256 of code host, repository and request: see `responseIdentity`
 * - 4 bytes CRC-32 of all before it
 *
 * All numbers are big-endian.
 */
const SIGNATURE = "SREF";
const CHECKSUM_BYTES = 32;
const IDENTITY_BYTES = 32;
const SUM_BYTES = 4;
/** Bytes after the table of checksums. */
export const REFERENCE_FOOTER_BYTES = 4 + 4 + 8 + 8 + 1 + CHECKSUM_BYTES + IDENTITY_BYTES + 4;
/** Larger files are not references. 64 MiB are enough for a response of 100 GB in packets of 8 KiB. */
export const MAX_REFERENCE_BYTES = 64 * 1024 * 1024;

export interface Reference {
  readonly layout: PacketLayout;
  /** Checksums of the response. */
  readonly sums: FileSums;
  /** Checksum at the end of the pack, which is in its name too: 20 or 32 bytes. */
  readonly packChecksum: Buffer;
}

export function encodeReference({ layout, sums, packChecksum }: Reference, identity: Buffer): Buffer {
  const table = Buffer.alloc(sums.values.length * SUM_BYTES);
  for (const [at, value] of sums.values.entries()) table.writeUInt32BE(value, at * SUM_BYTES);
  const footer = Buffer.alloc(REFERENCE_FOOTER_BYTES - SUM_BYTES);
  let at = footer.write(SIGNATURE, "latin1");
  at = footer.writeUInt32BE(SUM_BLOCK_BYTES, at);
  at = footer.writeBigUInt64BE(BigInt(sums.size), at);
  at = footer.writeBigUInt64BE(BigInt(layout.packBytes), at);
  at = footer.writeUInt8(packChecksum.length, at);
  packChecksum.copy(footer, at);
  identity.copy(footer, at + CHECKSUM_BYTES);
  const content = Buffer.concat([layout.encode(), table, footer]);
  const end = Buffer.alloc(SUM_BYTES);
  end.writeUInt32BE(crc32(content));
  return Buffer.concat([content, end]);
}

/** The length of the response, by the last {@link REFERENCE_FOOTER_BYTES} of a file; undefined: not a reference file. */
export function referredBytes(footer: Buffer): number | undefined {
  if (footer.length !== REFERENCE_FOOTER_BYTES || footer.toString("latin1", 0, 4) !== SIGNATURE)
    return undefined;
  return Number(footer.readBigUInt64BE(8));
}

/** @returns undefined if these are not the bytes of a reference file for this request */
export function decodeReference(bytes: Buffer, identity: Buffer): Reference | undefined {
  const footer = bytes.length - REFERENCE_FOOTER_BYTES;
  const end = bytes.length - SUM_BYTES;
  if (footer < 0 || bytes.length > MAX_REFERENCE_BYTES) return undefined;
  const size = referredBytes(bytes.subarray(footer));
  if (size === undefined || crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) return undefined;
  const blocks = Math.ceil(size / SUM_BLOCK_BYTES);
  const table = footer - blocks * SUM_BYTES;
  const checksumBytes = bytes.readUInt8(footer + 24);
  const isOurs =
    table >= 0 &&
    bytes.readUInt32BE(footer + 4) === SUM_BLOCK_BYTES &&
    (checksumBytes === 20 || checksumBytes === CHECKSUM_BYTES) &&
    bytes.subarray(end - IDENTITY_BYTES, end).equals(identity);
  if (!isOurs) return undefined;
  const layout = PacketLayout.decode(bytes.subarray(0, table));
  if (layout?.size !== size || BigInt(layout.packBytes) !== bytes.readBigUInt64BE(footer + 16))
    return undefined;
  const values = Uint32Array.from({ length: blocks }, (_, at) => bytes.readUInt32BE(table + at * SUM_BYTES));
  const packChecksum = bytes.subarray(footer + 25, footer + 25 + checksumBytes);
  return { layout, sums: new FileSums(size, values), packChecksum };
}

/** Name of the pack in the mirror, without suffix. */
export function packNameOf({ packChecksum }: Pick<Reference, "packChecksum">): string {
  return `pack-${packChecksum.toString("hex")}`;
}
