import { chmod, chown, lstat } from "node:fs/promises";
import { dirname } from "node:path";

/** Mode of files that are handed over. */
export const FILE_MODE = 0o640;
/** Mode of the folder from which they are sent. */
export const FOLDER_MODE = 0o750;
/** Mode of the folder above: the group may go through it, and not list it. */
export const ROOT_MODE = 0o710;
const GROUP_EXECUTE = 0o010;
const OTHERS_EXECUTE = 0o001;

/**
 * The first folder on the way to a path that a group cannot go through, from the root on.
 *
 * @param folder absolute. Folders that do not exist yet are skipped
 * @param groupId undefined: only what all may reach counts
 */
export async function closedFolder(folder: string, groupId: number | undefined): Promise<string | undefined> {
  const parent = dirname(folder);
  const closed = parent === folder ? undefined : await closedFolder(parent, groupId);
  if (closed !== undefined) return closed;
  const facts = await lstat(folder).catch(() => undefined);
  if (facts === undefined) return undefined;
  const needed = facts.gid === groupId ? GROUP_EXECUTE : OTHERS_EXECUTE;
  return (facts.mode & needed) === 0 ? folder : undefined;
}

/** Gives a file or folder to a group, with a mode. @throws a system error */
export async function openToGroup(path: string, groupId: number, mode: number): Promise<void> {
  const facts = await lstat(path);
  if (facts.gid !== groupId) await chown(path, -1, groupId);
  if ((facts.mode & 0o777) !== mode) await chmod(path, mode);
}
