import { open, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncFolder } from "../durable.ts";
import { temporaryName } from "./leftovers.ts";

/** Replaces a file's content so that a reader, and a crash at any instant, sees the old or the new one whole. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path);
  const aside = join(folder, temporaryName(basename(path)));
  try {
    const handle = await open(aside, "wx", 0o644);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(aside, path);
  } catch (error) {
    await unlink(aside).catch(() => undefined);
    throw error;
  }
  await syncFolder(folder);
}
