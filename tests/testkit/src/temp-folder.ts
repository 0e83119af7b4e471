import { rmSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TempFolder {
  /** Absolute and without symbolic links. */
  readonly path: string;
  /** Removes the folder and all in it; twice is fine. */
  remove(): Promise<void>;
}

/** Makes an empty folder (mode 0700) below the system's one for temporary files. At exit what is left of it goes. */
export async function tempFolder(prefix = "test"): Promise<TempFolder> {
  const path = await realpath(await mkdtemp(join(tmpdir(), `devplat-${prefix}-`)));
  standing.add(path);
  return {
    path,
    async remove() {
      await rm(path, REMOVAL);
      standing.delete(path);
    },
  };
}

/** A peer that is just ending may still drop a file into its folder: hence the retries. */
const REMOVAL = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;

const standing = new Set<string>();
process.once("exit", () => {
  for (const path of standing) {
    try {
      rmSync(path, REMOVAL);
    } catch {
      // Nobody is left to tell; the system's own clean-up takes it.
    }
  }
});
