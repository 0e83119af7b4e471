import { open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncFolder } from "../durable.ts";
import { temporaryName } from "./leftovers.ts";

/** Replaces a file atomically: a reader, also after a crash, sees either the complete old or the complete new content. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path);
  const temporary = join(folder, temporaryName(basename(path)));
  try {
    const handle = await open(temporary, "wx", 0o644);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  await syncFolder(folder);
}
