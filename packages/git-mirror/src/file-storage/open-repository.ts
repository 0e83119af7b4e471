import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import { GitStoreError, Repository } from "@devplat/git-store";
import type { StorageVersion } from "../storage/contract.ts";
import { writeHead } from "./integrity-check.ts";

/** Memory for the thread that serves: through this database it reads only tags. */
export const DATABASE_MEMORY = { pageCacheBytes: 512 * 1024, baseCacheBytes: 512 * 1024 };

/** Opens a repository. @returns undefined if there is none @throws GitStoreError if a part of it is missing */
export async function openExisting(path: string): Promise<Repository | undefined> {
  try {
    return await Repository.open(path, DATABASE_MEMORY);
  } catch (error) {
    if (!(error instanceof GitStoreError) || error.code !== "not_a_repository") throw error;
    // Refs are written last: a repository with refs had all other files.
    if ((await stampOf(join(path, "packed-refs"))) === undefined) return undefined;
    const hasConfig = (await stampOf(join(path, "config"))) !== undefined;
    const hasHead = (await stampOf(join(path, "HEAD"))) !== undefined;
    if (!hasConfig || hasHead) {
      throw new GitStoreError("corrupt_repository", `open ${path}: a part of it is missing`, { path });
    }
    await writeHead(path);
    return await Repository.open(path, DATABASE_MEMORY);
  }
}

/** Version of the repository in a folder; undefined: there is none. */
export async function versionOf(path: string): Promise<StorageVersion | undefined> {
  // A new folder in place of a removed one may get the same inode, but not the same birth time.
  const facts = await ifExists(stat(join(path, "objects"), { bigint: true }));
  if (facts === undefined) return undefined;
  const incarnation = `${facts.ino} ${facts.birthtimeNs}`;
  return { incarnation, commit: await stampOf(join(path, "packed-refs")) };
}

/** Changes whenever the file is replaced. Undefined: the file does not exist. */
async function stampOf(path: string): Promise<string | undefined> {
  const facts = await ifExists(stat(path));
  return facts === undefined ? undefined : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;
}
