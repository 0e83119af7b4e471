import { randomBytes } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { open, rename, unlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** Files that this module writes aside carry this suffix, so that leftovers of a crash can be found and removed. */
export const ASIDE_SUFFIX = ".aside~";

export interface WriteAtomicallyOptions {
  /** Permission bits of the new file, exactly (the umask does not narrow them). Default 0o600. */
  readonly mode?: number;
}

/**
 * Replaces a file's content so that a reader, and a crash at any instant, sees the old or the new content whole:
 * written aside in the same folder, fsync, rename, fsync of the folder.
 *
 * Does not follow a symbolic link at `path`: the link itself would be replaced. Resolve it first.
 *
 * @returns what a stat of the new file gives, whatever has become of it since (its ctime apart: the rename sets it)
 */
export async function writeAtomically(
  path: string,
  content: string | Uint8Array,
  options: WriteAtomicallyOptions = {},
): Promise<BigIntStats> {
  const aside = asidePath(path);
  const handle = await createAside(aside, options.mode ?? 0o600);
  let written: BigIntStats;
  try {
    try {
      await handle.writeFile(content);
      await handle.sync();
      written = await handle.stat({ bigint: true });
    } finally {
      await handle.close();
    }
    await rename(aside, path);
  } catch (error) {
    await unlink(aside).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
  return written;
}

/** A fresh name in the same folder for a file that is to be renamed to `path`. */
export function asidePath(path: string): string {
  return join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}${ASIDE_SUFFIX}`);
}

/** Opens a new file for writing; fails if it exists, follows no link, and sets exactly `mode`. */
export async function createAside(path: string, mode: number): Promise<FileHandle> {
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
  const handle = await open(path, flags, mode);
  try {
    await handle.chmod(mode);
  } catch (error) {
    await handle.close();
    await unlink(path).catch(() => undefined);
    throw error;
  }
  return handle;
}

/** Makes a rename or an unlink in the folder durable. Where folders cannot be opened (Windows) it does nothing. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
