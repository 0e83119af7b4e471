import { SUM_BLOCK_BYTES, type FileSums } from "./block-sums.ts";
import type { ReadBytes } from "./file-io.ts";
import { isUnreadable } from "@devplat/base/file-damage";

/** Bytes of one read. */
const VERIFY_CHUNK_BYTES = 4 * SUM_BLOCK_BYTES;

interface SummedFile {
  readonly read: ReadBytes;
  readonly size: number;
  readonly sums: FileSums;
}

/**
 * Reads a file of an earlier process through once: damage that is found now does not fail a clone, because the code host
 * can still answer.
 */
export async function isSound(file: SummedFile): Promise<boolean> {
  return await isRangeSound(file, 0, file.size);
}

/** Reads a range of a file through. @param offset the start of a block @param end the start of a block, or of the file's end */
export async function isRangeSound(
  { read, sums }: SummedFile,
  offset: number,
  end: number,
): Promise<boolean> {
  const buffer = Buffer.allocUnsafe(Math.min(VERIFY_CHUNK_BYTES, Math.max(1, end - offset)));
  try {
    for (let position = offset; position < end;) {
      const bytes = buffer.subarray(0, Math.min(buffer.length, end - position));
      if ((await read(bytes, position)) < bytes.length || !sums.matches(bytes, position)) return false;
      position += bytes.length;
    }
    return true;
  } catch (error) {
    if (isUnreadable(error)) return false;
    throw error;
  }
}
