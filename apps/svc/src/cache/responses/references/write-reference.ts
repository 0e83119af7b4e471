import { open, rename, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "@devplat/base";
import { fileIdentity, writeAllAt } from "../file-io.ts";
import type { ReadFile } from "../read-file.ts";
import { pendingName } from "../response-folders.ts";

export interface ReferenceWrite {
  readonly path: string;
  readonly key: string;
  readonly bytes: Buffer;
  /** The open response file. */
  readonly replaced: ReadFile;
  /** Whether the response file still has its name. Asked immediately before the replacement. */
  readonly isSame: () => Promise<boolean>;
  /** Called before the reference file gets its name. */
  readonly onComplete: (identity: string, modifiedMs: number) => void;
}

/**
 * Replaces a response file by a reference file with the same time of last use.
 *
 * @returns whether it was replaced
 * @throws a system error
 */
export async function writeReference(write: ReferenceWrite): Promise<boolean> {
  const { path, key, bytes, replaced, isSame, onComplete } = write;
  const pendingPath = join(dirname(path), pendingName(key));
  const handle = await open(pendingPath, "wx", 0o600);
  try {
    await writeAllAt(handle.fd, [bytes], 0);
    const { atime, mtime } = await replaced.stat();
    await handle.utimes(atime, mtime);
    await handle.sync();
    const facts = await handle.stat();
    if (!(await isSame())) return false;
    onComplete(fileIdentity(path, facts), facts.mtimeMs);
    await rename(pendingPath, path);
    await syncFolder(dirname(path));
    return true;
  } finally {
    await handle.close();
    await unlink(pendingPath).catch(() => undefined);
  }
}
