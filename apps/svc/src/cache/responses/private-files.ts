import { chmod, lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { folderNames, ifExists } from "@devplat/base";
import { HANDED_FOLDER, RESPONSES_FOLDER } from "./response-folders.ts";

const OWNER_BITS = 0o700;
const GROUP_BITS = 0o070;
const PRIVATE_FILE_MODE = 0o600;

/**
 * Takes from the group what `cache.accel_group` gave it: the cache folder, the folder of files that are handed over, and stored
 * responses. Does nothing if it was not given.
 *
 * @throws a system error
 */
export async function makePrivate(storagePath: string): Promise<void> {
  const handed = join(storagePath, HANDED_FOLDER);
  const facts = await ifExists(lstat(handed));
  // A symbolic link leads to a folder that is not of this service.
  if (facts?.isDirectory() !== true || (facts.mode & GROUP_BITS) === 0) return;
  const responses = join(storagePath, RESPONSES_FOLDER);
  for (const owner of await folderNames(responses)) {
    for (const name of await folderNames(join(responses, owner))) {
      await closeFiles(join(responses, owner, name));
    }
  }
  await closeFiles(handed);
  await chmod(storagePath, (await lstat(storagePath)).mode & OWNER_BITS);
  // The last step: after a crash before it, the next start does all again.
  await chmod(handed, facts.mode & OWNER_BITS);
}

async function closeFiles(folder: string): Promise<void> {
  for (const name of (await ifExists(readdir(folder))) ?? []) {
    const path = join(folder, name);
    const facts = await ifExists(lstat(path));
    if (facts?.isFile() !== true || (facts.mode & GROUP_BITS) === 0) continue;
    await ifExists(chmod(path, PRIVATE_FILE_MODE));
  }
}
