import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TempFolder {
  /** Absolute and without symbolic links. */
  readonly path: string;
  /** Removes the folder and all in it; twice is fine. */
  remove(): Promise<void>;
}

/** Makes an empty folder (mode 0700) below the system's folder for temporary files. */
export async function tempFolder(prefix = "test"): Promise<TempFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), `devplat-${prefix}-`)));
  return {
    path,
    // A peer that is just ending may still drop a file into it: hence the retries.
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  };
}
