import { lstat, rename, rm } from "node:fs/promises";
import { systemCode } from "./errors.ts";
import { ifExists } from "./if-exists.ts";

/**
 * Codes of system errors that say that a file cannot be read now or later: it is a folder, a link or a device, the
 * permission is missing, or a sector is bad.
 */
const UNREADABLE: ReadonlySet<string> = new Set([
  "EACCES",
  "EBADMSG",
  "EIO",
  "EISDIR",
  "ELOOP",
  "ENXIO",
  "EPERM",
  "EUCLEAN",
]);

/** Whether an error says that a file itself is unusable, and not that memory, disk space or descriptors are missing. */
export function isUnreadable(error: unknown): boolean {
  return UNREADABLE.has(systemCode(error) ?? "");
}

/**
 * Moves a damaged file, or the folder in its place, to `target`, and replaces what is there.
 *
 * @returns false if it does not exist any more
 */
export async function quarantine(path: string, target: string): Promise<boolean> {
  try {
    await rename(path, target);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT" && (await ifExists(lstat(path))) === undefined) return false;
    // `rename` replaces neither a file by a folder nor a folder by a file.
    await rm(target, { recursive: true, force: true });
    await rename(path, target);
    return true;
  }
}
