import { SUM_BLOCK_BYTES, type FileSums } from "./block-sums.ts";
import { readAt } from "./file-io.ts";
import { isUnreadable } from "@devplat/base/file-damage";

/** Bytes of one read. */
const VERIFY_CHUNK_BYTES = 4 * SUM_BLOCK_BYTES;

/**
 * Reads a file of an earlier process through once: damage that is found now does not fail a clone, because the code host
 * can still answer.
 */
export async function isSound(file: {
  readonly fd: number;
  readonly size: number;
  readonly sums: FileSums;
}): Promise<boolean> {
  const { fd, size, sums } = file;
  const buffer = Buffer.allocUnsafe(Math.min(VERIFY_CHUNK_BYTES, Math.max(1, size)));
  for (let position = 0; position < size;) {
    const length = Math.min(buffer.length, size - position);
    if (!(await fill(fd, buffer, length, position))) return false;
    if (!sums.matches(buffer.subarray(0, length), position)) return false;
    position += length;
  }
  return true;
}

/** @returns false: the file ends, or cannot be read */
async function fill(fd: number, buffer: Buffer, length: number, position: number): Promise<boolean> {
  try {
    for (let at = 0; at < length;) {
      const count = await readAt(fd, buffer.subarray(at, length), length - at, position + at);
      if (count === 0) return false;
      at += count;
    }
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}
