import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Puts a file's content on the disk. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Puts renames and unlinks in a folder on the disk. Where folders cannot be opened (Windows) it does nothing. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
