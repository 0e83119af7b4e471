import { randomBytes } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { open, readdir, unlink, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { renameOver } from "./system/rename-over.ts";

/** Suffix of the temporary files of this module. By it, leftovers of a crash are found and removed. */
export const TEMPORARY_SUFFIX = ".aside~";
/** Length of the random part of a temporary file's name, in bytes. */
const RANDOM_BYTES = 6;
const RANDOM = new RegExp(`^[0-9a-f]{${2 * RANDOM_BYTES}}$`);

export interface WriteAtomicallyOptions {
  /** Permission bits of the new file, exactly (the umask does not narrow them). Default 0o600. */
  readonly mode?: number;
}

/**
 * Replaces a file's content. A reader, also after a crash at any time, sees the old content or the new content, complete.
 * The steps: write a temporary file in the same folder, fsync, rename, fsync of the folder.
 *
 * It does not follow a symbolic link at `path`: it would replace the link itself. Resolve the link first.
 *
 * @returns stat of the new file before the rename, which sets its ctime again
 */
export async function writeAtomically(
  path: string,
  content: string | Uint8Array,
  options: WriteAtomicallyOptions = {},
): Promise<BigIntStats> {
  const temporary = temporaryPath(path);
  const handle = await createTemporaryFile(temporary, options.mode ?? 0o600);
  let written: BigIntStats;
  try {
    try {
      await handle.writeFile(content);
      await handle.sync();
      written = await handle.stat({ bigint: true });
    } finally {
      await handle.close();
    }
    await renameOver(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncFolder(dirname(path));
  return written;
}

/** A new name in the same folder, for a file that will be renamed to `path`. */
export function temporaryPath(path: string): string {
  const random = randomBytes(RANDOM_BYTES).toString("hex");
  return join(dirname(path), `${temporaryPrefix(path)}${random}${TEMPORARY_SUFFIX}`);
}

/**
 * Removes the temporary files that a crash has left next to these files. Never rejects. The caller makes sure that no other process
 * writes them now.
 */
export async function removeLeftovers(files: readonly string[]): Promise<void> {
  for (const [folder, inFolder] of Map.groupBy(files, dirname)) {
    const names = await readdir(folder).catch(() => []);
    const prefixes = inFolder.map(temporaryPrefix);
    for (const name of names) {
      if (!name.endsWith(TEMPORARY_SUFFIX)) continue;
      const isOwn = prefixes.some(
        (prefix) =>
          name.startsWith(prefix) && RANDOM.test(name.slice(prefix.length, -TEMPORARY_SUFFIX.length)),
      );
      if (isOwn) await unlink(join(folder, name)).catch(() => undefined);
    }
  }
}

function temporaryPrefix(path: string): string {
  return `.${basename(path)}.`;
}

/** Opens a new file for writing. It fails if the file exists, follows no link, and sets exactly `mode`. */
export async function createTemporaryFile(path: string, mode: number): Promise<FileHandle> {
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

/** Makes a rename or an unlink in the folder durable. It does nothing on Windows, which cannot open folders. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
