import { constants } from "node:fs";
import { lstat, open, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import type { FileSums } from "./block-sums.ts";
import { decodeTrailer } from "./response-trailer.ts";

/** `<key>.<inode of the response file>.sums` */
const TRAILER_FILE = /^([0-9a-f]{64})\.(\d+)\.sums$/;
/** Milliseconds after which a trailer without its response is removed. Before that, the response may still be written. */
const ORPHAN_MS = 600_000;
/** Maximum bytes of a trailer: that of a response of 500 GB. */
const MAX_TRAILER_BYTES = 16 * 1024 * 1024;

/** Path of the trailer of a response file. The inode ties it to one file, so that no response gets the sums of another. */
function trailerPath(path: string, inode: number): string {
  return `${path}.${inode}.sums`;
}

/** Writes the trailer of a response file that is about to be renamed to `path`. @throws a system error */
export async function writeSeparateTrailer(path: string, inode: number, trailer: Buffer): Promise<void> {
  const flags = constants.O_CREAT | constants.O_TRUNC | constants.O_WRONLY | constants.O_NOFOLLOW;
  const handle = await open(trailerPath(path, inode), flags, 0o600);
  try {
    await handle.writeFile(trailer);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Reads the trailer that belongs to a response file without a trailer of its own.
 *
 * @param fileBytes of the response file
 * @returns undefined if there is none, or it is damaged
 * @throws a system error
 */
export async function readSeparateTrailer(
  path: string,
  inode: number,
  fileBytes: number,
  identity: Buffer,
): Promise<FileSums | undefined> {
  const handle = await ifExists(open(trailerPath(path, inode), constants.O_RDONLY | constants.O_NOFOLLOW));
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    if (size > MAX_TRAILER_BYTES) return undefined;
    const bytes = await handle.readFile();
    return decodeTrailer(bytes, fileBytes + bytes.length, identity);
  } finally {
    await handle.close();
  }
}

/** Removes the trailers in a folder whose response files were removed or replaced. Never rejects. */
export async function removeOrphanTrailers(folder: string, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const [, key, inode] = TRAILER_FILE.exec(name) ?? [];
    if (key === undefined) continue;
    const response = await lstat(join(folder, key)).catch(() => undefined);
    if (response?.ino === Number(inode)) continue;
    const facts = await stat(join(folder, name)).catch(() => undefined);
    if (facts === undefined || Date.now() - facts.mtimeMs < ORPHAN_MS) continue;
    await unlink(join(folder, name)).catch(() => undefined);
  }
}
