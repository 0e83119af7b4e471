import { rmSync } from "node:fs";
import { open, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createTemporaryFile, ifExists, messageOf, syncFolder, systemCode } from "@devplat/base";
import { removeTemporaryFiles, temporaryName } from "@devplat/git-store/leftovers";
import { SvcError } from "../errors.ts";

/** Means standard output or input. */
export const STANDARD_STREAM = "-";
const MODE = 0o600;
/** In the names of temporary files. They say which process writes them, so those of one that was killed are known. */
const TEMPORARY_KIND = "svc-backup";
/** Bytes of a read: a part of age has 64 KiB. */
const READ_BYTES = 256 * 1024;

/**
 * Writes a file with mode 0600. It gets its name when it is complete and on the disk. Temporary files of backups that were killed
 * are removed from the folder first.
 *
 * @throws SvcError `backup_failed`
 */
export async function writeBackupFile(path: string, bytes: Readable): Promise<void> {
  const present = await ifExists(stat(path));
  if (present !== undefined && !present.isFile()) {
    bytes.destroy();
    throw new SvcError("backup_failed", `Cannot write the backup: "${path}" is not a file`, {
      hint: "Name a file, or write to standard output: -o -.",
    });
  }
  await removeTemporaryFiles(dirname(path), TEMPORARY_KIND);
  const temporary = join(dirname(path), temporaryName(TEMPORARY_KIND));
  const leave = (): void => {
    rmSync(temporary, { force: true });
    process.exit(1);
  };
  process.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    const handle = await createTemporaryFile(temporary, MODE);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    bytes.destroy();
    await unlink(temporary).catch(() => undefined);
    throw fileFault("write", path, error);
  } finally {
    process.off("SIGINT", leave).off("SIGTERM", leave);
  }
}

/** @throws SvcError `backup_failed` */
export async function writeStandardOutput(bytes: Readable): Promise<void> {
  try {
    await pipeline(bytes, process.stdout, { end: false });
  } catch (error) {
    throw fileFault("write", "standard output", error);
  }
}

/** @throws SvcError `backup_failed` */
export async function openBackupFile(path: string): Promise<Readable> {
  if (path === STANDARD_STREAM) return process.stdin;
  try {
    const handle = await open(path);
    if (!(await handle.stat()).isDirectory()) return handle.createReadStream({ highWaterMark: READ_BYTES });
    await handle.close();
    throw new SvcError("backup_failed", `Cannot read the backup "${path}": it is a folder`, {
      hint: "Name the file.",
    });
  } catch (error) {
    throw fileFault("read", path, error);
  }
}

function fileFault(action: "read" | "write", path: string, error: unknown): unknown {
  if (error instanceof SvcError) return error;
  const code = systemCode(error);
  const reason = REASONS[code ?? ""] ?? code ?? messageOf(error);
  return new SvcError("backup_failed", `Cannot ${action} the backup "${path}": ${reason}`, { cause: error });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "no such file or folder",
  EACCES: "no permission",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
};
