import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { quarantine } from "@devplat/base/file-damage";

/** Folder of a repository for its damaged files. `Repository.quarantinePack` uses it, too. */
const CORRUPT_FOLDER = "corrupt";

/** Moves a damaged file of a repository to its folder `corrupt`. @returns false if it does not exist any more */
export async function quarantineFile(repositoryPath: string, path: string): Promise<boolean> {
  const folder = join(repositoryPath, CORRUPT_FOLDER);
  await mkdir(folder, { recursive: true });
  return await quarantine(path, join(folder, basename(path)));
}
