import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "@devplat/base";
import { GitStoreError } from "@devplat/git-store";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** Stands in a repository while a pack is there that was not proven yet. */
const JOURNAL_FILE = "filling.json";
const COMMIT_GRAPH = join("objects", "info", "commit-graph");

/**
 * Remembers which packs a repository had before a fill, so that one whose fill failed, or whose process was killed,
 * can be taken out again. To be used under the repository's fill lock only.
 */
export class FillJournal {
  readonly #path: string;
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
    this.#path = join(repositoryPath, JOURNAL_FILE);
  }

  /** @param packs names that are there and proven */
  async begin(packs: readonly string[]): Promise<void> {
    await writeSealed(this.#path, { packs });
  }

  async end(): Promise<void> {
    await unlink(this.#path);
    // A journal that comes back after a power failure would take out what is claimed by then.
    await syncFolder(this.#repository);
  }

  /** Whether a fill is under way or was broken off. */
  async isOpen(): Promise<boolean> {
    return (await this.#read()) !== undefined;
  }

  /** Takes out what came since `begin`; nothing if no fill was broken off. */
  async undo(): Promise<void> {
    const proven = await this.#read();
    if (proven === undefined) return;
    const folder = join(this.#repository, "objects", "pack");
    const files = (await readdir(folder)).filter((file) => {
      const name = /^(pack-[0-9a-f]+)\./.exec(file)?.[1];
      return name !== undefined && !proven.has(name);
    });
    // The index first: without it the others are no pack.
    for (const file of files.toSorted((a, b) => Number(b.endsWith(".idx")) - Number(a.endsWith(".idx")))) {
      await unlink(join(folder, file));
    }
    // It may name commits that are gone now; the next fill writes it anew.
    if (files.length > 0) await unlink(join(this.#repository, COMMIT_GRAPH)).catch(() => undefined);
    await this.end();
  }

  /** @throws GitStoreError: then it is not known which packs are proven */
  async #read(): Promise<ReadonlySet<string> | undefined> {
    const content = await readSealed(this.#path);
    if (content === undefined) return undefined;
    // An earlier version wrote the list alone.
    const packs = Array.isArray(content) ? content : (Object(content) as Record<string, unknown>)["packs"];
    if (Array.isArray(packs)) return new Set(packs.map(String));
    throw new GitStoreError("corrupt_repository", `read ${this.#path}: it is not what was written`);
  }
}
