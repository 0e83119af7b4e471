import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import { GitStoreError, Repository } from "@devplat/git-store";
import { writeHead } from "./integrity-check.ts";

/** The thread that serves reads tags through this, and nothing else. */
export const DATABASE_MEMORY = { pageCacheBytes: 512 * 1024, baseCacheBytes: 512 * 1024 };

/** Opens a repository; undefined: there is none. @throws GitStoreError also where a part of one is missing */
export async function openExisting(path: string): Promise<Repository | undefined> {
  try {
    return await Repository.open(path, DATABASE_MEMORY);
  } catch (error) {
    if (!(error instanceof GitStoreError) || error.code !== "not_a_repository") throw error;
    // Refs are written last: a repository that has them had everything else.
    if ((await stampOf(join(path, "packed-refs"))) === "") return undefined;
    if ((await stampOf(join(path, "config"))) === "" || (await stampOf(join(path, "HEAD"))) !== "") {
      throw new GitStoreError("corrupt_repository", `open ${path}: a part of it is missing`, { path });
    }
    await writeHead(path);
    return await Repository.open(path, DATABASE_MEMORY);
  }
}

/** Changes whenever the file is replaced; empty: there is none. */
export async function stampOf(path: string): Promise<string> {
  const facts = await ifExists(stat(path));
  return facts === undefined ? "" : `${facts.ino} ${facts.size} ${facts.mtimeMs}`;
}

/** Tells a store from another one made in its place, whose folder may have got the same inode; empty: there is none. */
export async function placeOf(path: string): Promise<string> {
  const facts = await ifExists(stat(join(path, "objects"), { bigint: true }));
  return facts === undefined ? "" : `${facts.ino} ${facts.birthtimeNs}`;
}
