import { lstat, rename, rm } from "node:fs/promises";
import { systemCode } from "./errors.ts";
import { ifExists } from "./if-exists.ts";

/**
 * Codes of system errors that say: this file cannot be read now or later. A folder, a link or a device in its place, no
 * permission, a bad sector.
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

/** Whether an error says that a file itself is unusable, as opposed to a lack of memory, room or descriptors. */
export function isUnreadable(error: unknown): boolean {
  return UNREADABLE.has(systemCode(error) ?? "");
}

/**
 * Moves a damaged file, or what is in its place, out of the way. An earlier one under the same name makes room.
 *
 * @returns false: it was not there any more
 */
export async function quarantine(path: string, target: string): Promise<boolean> {
  try {
    await rename(path, target);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT" && (await ifExists(lstat(path))) === undefined) return false;
    // A folder cannot take a file's place, nor a file that of a folder.
    await rm(target, { recursive: true, force: true });
    await rename(path, target);
    return true;
  }
}
