import { randomBytes } from "node:crypto";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "@devplat/base";
import { folderNames } from "@devplat/base/folder-names";
import type { RepositoryId } from "../repository-id.ts";

/** Where repositories that must not be served any more are moved before they are removed. No owner's name starts so. */
const REMOVED_FOLDER = ".removed~";
const SUFFIX = ".git";
/** Of a repository that was found damaged: kept for a look, one per name. */
const CORRUPT_SUFFIX = ".git.corrupt~";

/** Where the bare repositories are: `<storage>/<owner>/<name>.git`. */
export class StoreFolder {
  readonly #root: string;
  readonly #otherFolders: readonly string[];
  readonly #removals = new Set<Promise<void>>();

  /** @param otherFolders names below `storagePath` that belong to other parts of the program */
  constructor(storagePath: string, otherFolders: readonly string[]) {
    this.#root = storagePath;
    this.#otherFolders = otherFolders;
  }

  path(id: RepositoryId): string {
    return join(this.#root, id.owner, id.name + SUFFIX);
  }

  /** Bytes of a repository's packs, and when they last changed (milliseconds since the epoch). */
  async diskUse(id: RepositoryId): Promise<{ readonly bytes: number; readonly changedAt: number }> {
    const folder = join(this.path(id), "objects", "pack");
    const facts = await Promise.all(
      (await folderNames(folder)).map((name) => stat(join(folder, name)).catch(() => undefined)),
    );
    const files = facts.filter((file) => file !== undefined);
    return {
      bytes: files.reduce((sum, { size }) => sum + size, 0),
      changedAt: Math.max(0, ...files.map(({ mtimeMs }) => mtimeMs)),
    };
  }

  /** From now on the repository is not found; its data is removed in the background. */
  async remove(id: RepositoryId): Promise<void> {
    await this.#remove(this.path(id));
    await this.#remove(join(this.#root, id.owner, id.name + CORRUPT_SUFFIX));
  }

  /** Moves a damaged repository out of the way, where it can be looked at. */
  async setCorrupt(id: RepositoryId): Promise<void> {
    const target = join(this.#root, id.owner, id.name + CORRUPT_SUFFIX);
    await this.#remove(target);
    await ignoreMissing(rename(this.path(id), target));
  }

  /** Repositories that have a folder. */
  async repositories(): Promise<{ owner: string; name: string }[]> {
    const found = new Map<string, { owner: string; name: string }>();
    for (const owner of await folderNames(this.#root)) {
      if (this.#otherFolders.includes(owner) || owner.startsWith(".")) continue;
      for (const folder of await folderNames(join(this.#root, owner))) {
        const name = /^(.+)\.git(?:\.corrupt~)?$/.exec(folder)?.[1];
        if (name !== undefined) found.set(`${owner}/${name}`, { owner, name });
      }
    }
    return [...found.values()];
  }

  /** Removes what was on its way out when a process ended. */
  async removeLeftovers(): Promise<void> {
    await rm(join(this.#root, REMOVED_FOLDER), { recursive: true, force: true });
  }

  /** Waits for removals that are under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }

  async #remove(path: string): Promise<void> {
    const removed = join(this.#root, REMOVED_FOLDER);
    const target = join(removed, randomBytes(12).toString("hex"));
    await mkdir(removed, { recursive: true, mode: 0o700 });
    if (!(await ignoreMissing(rename(path, target)))) return;
    const removal = rm(target, { recursive: true, force: true })
      .catch(() => undefined)
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }
}

/** @returns whether it was there */
async function ignoreMissing(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false;
    throw error;
  }
}
