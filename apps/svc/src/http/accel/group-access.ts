import { lstat } from "node:fs/promises";
import { dirname } from "node:path";

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
