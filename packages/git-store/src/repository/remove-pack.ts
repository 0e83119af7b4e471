import { rm, unlink } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes the files of a pack. Processes that have it open can still read it.
 *
 * @param folder `objects/pack`
 * @param name `pack-<checksum>`
 */
export async function removePack(folder: string, name: string): Promise<void> {
  // The index first: without it the other files are not a pack.
  await unlink(join(folder, `${name}.idx`));
  for (const kind of ["pack", "rev", "bitmap", "reach"])
    await rm(join(folder, `${name}.${kind}`), { force: true });
}
