import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";

/**
 * Tells whether a file is still the one that we wrote or looked at, without reading it; undefined if there is none.
 * The time of the last change of its inode is left out: our own rename sets it.
 */
export async function fileSignature(file: string): Promise<string | undefined> {
  try {
    return signatureOf(await stat(file, { bigint: true }));
  } catch {
    return undefined;
  }
}

/** A {@link fileSignature} from known facts. */
export function signatureOf({ dev, ino, size, mtimeNs, mode }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, mode.toString(8)].join(":");
}
