import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** Flushes the content of a file to disk. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Flushes renames and unlinks in a folder to disk. Does nothing on systems that cannot open folders (Windows). */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
