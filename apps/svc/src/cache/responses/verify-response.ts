import { SUM_BLOCK_BYTES, type FileSums } from "./block-sums.ts";
import type { ReadBytes } from "./file-io.ts";
import { isUnreadable } from "@devplat/base/file-damage";

/** Bytes of one read. */
const VERIFY_CHUNK_BYTES = 4 * SUM_BLOCK_BYTES;

/**
 * Reads a file of an earlier process through once: damage that is found now does not fail a clone, because the code host
 * can still answer.
 */
export async function isSound(file: {
  readonly read: ReadBytes;
  readonly size: number;
  readonly sums: FileSums;
}): Promise<boolean> {
  const { read, size, sums } = file;
  const buffer = Buffer.allocUnsafe(Math.min(VERIFY_CHUNK_BYTES, Math.max(1, size)));
  try {
    for (let position = 0; position < size;) {
      const bytes = buffer.subarray(0, Math.min(buffer.length, size - position));
      if ((await read(bytes, position)) < bytes.length || !sums.matches(bytes, position)) return false;
      position += bytes.length;
    }
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}
