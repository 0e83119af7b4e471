import { open, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "@devplat/base";
import { writeAllAt } from "../file-io.ts";
import type { ReadFile } from "../read-file.ts";
import { pendingName } from "../response-folders.ts";

/**
 * Replaces a response file by a reference file with the same time of last use.
 *
 * @param replaced the open response file
 * @param isSame whether the response file still has its name. Asked immediately before the replacement
 * @returns the time of modification, in milliseconds since the epoch; undefined: nothing was replaced
 * @throws a system error
 */
export async function writeReference(
  path: string,
  key: string,
  bytes: Buffer,
  replaced: ReadFile,
  isSame: () => Promise<boolean>,
): Promise<number | undefined> {
  const pendingPath = join(dirname(path), pendingName(key));
  const handle = await open(pendingPath, "wx", 0o600);
  try {
    await writeAllAt(handle.fd, [bytes], 0);
    const { atime, mtime } = await replaced.stat();
    await handle.utimes(atime, mtime);
    await handle.sync();
    const { mtimeMs } = await handle.stat();
    if (!(await isSame())) return undefined;
    await rename(pendingPath, path);
    await syncFolder(dirname(path));
    return mtimeMs;
  } finally {
    await handle.close();
    await unlink(pendingPath).catch(() => undefined);
  }
}
