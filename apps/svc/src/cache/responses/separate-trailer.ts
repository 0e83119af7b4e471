import { constants } from "node:fs";
import { lstat, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { TEMPORARY_SUFFIX, ifExists } from "@devplat/base";
import type { FileSums } from "./block-sums.ts";
import { CORRUPT_SUFFIX, SEPARATE_TRAILER_SUFFIX } from "./file-suffixes.ts";
import { decodeTrailer } from "./response-trailer.ts";

/** `<key>.<inode of the response file>.sums` */
const TRAILER_FILE = /^([0-9a-f]{64})\.(\d+)\.sums$/;
/** Maximum bytes of a trailer: that of a response of 500 GB. */
const MAX_TRAILER_BYTES = 16 * 1024 * 1024;

/** Path of the trailer of a response file. The inode ties it to one file, so that no response gets the sums of another. */
function trailerPath(path: string, inode: number): string {
  return `${path}.${inode}${SEPARATE_TRAILER_SUFFIX}`;
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

/**
 * Removes the trailer of a response file that was removed or replaced.
 *
 * @param path at which requests find the response
 * @throws a system error
 */
export async function removeSeparateTrailer(path: string, inode: number): Promise<void> {
  await ifExists(unlink(trailerPath(path, inode)));
}

/**
 * Removes the trailers in a folder whose response files are gone. Never rejects.
 *
 * @param names all files of the folder
 * @returns the number of trailers
 */
export async function removeOrphanTrailers(folder: string, names: readonly string[]): Promise<number> {
  let count = 0;
  for (const name of names) {
    const [, key, inode] = TRAILER_FILE.exec(name) ?? [];
    if (key === undefined) continue;
    // The trailer is there before the response gets its name: first the files that are being written, then the name.
    const pending = names.filter((each) => each.startsWith(`.${key}.`) && each.endsWith(TEMPORARY_SUFFIX));
    const files = [...pending, `${key}${CORRUPT_SUFFIX}`, key];
    if (await hasInode(folder, files, Number(inode))) continue;
    const isRemoved = await unlink(join(folder, name)).then(
      () => true,
      () => false,
    );
    if (isRemoved) count++;
  }
  return count;
}

async function hasInode(folder: string, names: readonly string[], inode: number): Promise<boolean> {
  for (const name of names) {
    const facts = await lstat(join(folder, name)).catch(() => undefined);
    if (facts?.ino === inode) return true;
  }
  return false;
}
