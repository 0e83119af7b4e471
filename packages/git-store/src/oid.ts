import { isOid, type ObjectFormat } from "@devplat/git-protocol";
import { GitStoreError } from "./errors.ts";
import { oidBytes } from "./object-format.ts";

/** An object id in lower-case hex: 40 characters for SHA-1, 64 for SHA-256. */
export type Oid = string;

/** @throws {GitStoreError} `bad_oid` */
export function parseOid(format: ObjectFormat, value: string): Buffer {
  if (!isOid(value, format)) {
    throw new GitStoreError(
      "bad_oid",
      `read an object id: ${JSON.stringify(value.slice(0, 80))} is not ${oidBytes(format) * 2} digits of lower-case hex`,
    );
  }
  return Buffer.from(value, "hex");
}

/** Reads the id at `start` of a byte table as hex. */
export function hexAt(bytes: Buffer, start: number, length: number): Oid {
  return bytes.toString("hex", start, start + length);
}

/** Compares the `length` bytes at `aStart` and `bStart` as git does (unsigned, first byte first). */
export function compareBytes(
  a: Uint8Array,
  aStart: number,
  b: Uint8Array,
  bStart: number,
  length: number,
): number {
  for (let i = 0; i < length; i++) {
    const difference = a[aStart + i]! - b[bStart + i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}
