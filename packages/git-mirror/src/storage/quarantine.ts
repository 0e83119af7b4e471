import { mkdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { quarantine } from "@devplat/base/file-damage";

/** Where damaged files of a repository are moved, as `Repository.quarantinePack` does. */
const CORRUPT_FOLDER = "corrupt";

/** Moves a damaged file of a repository to its folder `corrupt`. @returns false: it is not there any more */
export async function quarantineFile(repositoryPath: string, path: string): Promise<boolean> {
  const folder = join(repositoryPath, CORRUPT_FOLDER);
  await mkdir(folder, { recursive: true });
  return await quarantine(path, join(folder, basename(path)));
}
