import { isResident } from "./resident.ts";

/** Bytes that are looked at, and read, together. The kernel gives up pages of a file in such pieces or larger ones. */
const PIECE_BYTES = 512 * 1024;
/**
 * Maximum bytes that are read before the first one is sent, which takes some 30 ms from a fast disk. A file that lacks more
 * is sent while it is read.
 */
const MAX_MISSING_BYTES = 32 * 1024 * 1024;

/** An open file whose bytes can be compared with their checksums. */
export interface ComparedFile {
  readonly descriptor: number;
  /** @returns whether the bytes of this range are the written ones; they are in the kernel's memory then */
  readThrough(offset: number, end: number): Promise<boolean>;
}

/**
 * Makes sure that the kernel has the first bytes of a file in memory. Kernels give up some pages of a file that was not
 * used for seconds. Only those are read and compared, so that the rest can be sent without it.
 *
 * @returns false: too much is missing, or a part is damaged
 * @throws a system error
 */
export async function bringIntoMemory(file: ComparedFile, size: number): Promise<boolean> {
  if (isResident(file.descriptor, 0, size)) return true;
  const missing: number[] = [];
  for (let offset = 0; offset < size; offset += PIECE_BYTES) {
    if (isResident(file.descriptor, offset, Math.min(PIECE_BYTES, size - offset))) continue;
    if (missing.push(offset) * PIECE_BYTES > MAX_MISSING_BYTES) return false;
  }
  for (const offset of missing) {
    if (!(await file.readThrough(offset, Math.min(size, offset + PIECE_BYTES)))) return false;
  }
  return true;
}
