import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "@devplat/base";
import { GitStoreError } from "@devplat/git-store";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** File in a repository while it has a pack whose connectivity is not checked. */
const JOURNAL_FILE = "filling.json";
const COMMIT_GRAPH = join("objects", "info", "commit-graph");

/**
 * Remembers which packs a repository had before a fill, so that the pack of a failed fill or a killed process can be
 * removed. Use it only under the fill lock of the repository.
 */
export class FillJournal {
  readonly #path: string;
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
    this.#path = join(repositoryPath, JOURNAL_FILE);
  }

  /** @param packs names of the packs that are there */
  async begin(packs: readonly string[]): Promise<void> {
    await writeSealed(this.#path, { packs });
  }

  async end(): Promise<void> {
    await unlink(this.#path);
    // A journal that returns after a power failure would remove packs that refs name.
    await syncFolder(this.#repository);
  }

  /** Whether a fill is running or was interrupted. */
  async isOpen(): Promise<boolean> {
    return (await this.#read()) !== undefined;
  }

  /** Removes the packs that came since `begin`. Does nothing if no fill was interrupted. */
  async undo(): Promise<void> {
    const known = await this.#read();
    if (known === undefined) return;
    const folder = join(this.#repository, "objects", "pack");
    const files = (await readdir(folder)).filter((file) => {
      const name = /^(pack-[0-9a-f]+)\./.exec(file)?.[1];
      return name !== undefined && !known.has(name);
    });
    // It may name commits of these packs. The next fill writes it again. First: after a crash, no pack may be left to remove.
    if (files.length > 0) await unlink(join(this.#repository, COMMIT_GRAPH)).catch(() => undefined);
    // The index first: without it the other files are ignored.
    for (const file of files.toSorted((a, b) => Number(b.endsWith(".idx")) - Number(a.endsWith(".idx")))) {
      await unlink(join(folder, file));
    }
    await this.end();
  }

  /** @throws GitStoreError if the file is damaged: then the packs of before the fill are not known */
  async #read(): Promise<ReadonlySet<string> | undefined> {
    const content = await readSealed(this.#path);
    if (content === undefined) return undefined;
    // An earlier version wrote the list alone.
    const packs = Array.isArray(content) ? content : (Object(content) as Record<string, unknown>)["packs"];
    if (Array.isArray(packs)) return new Set(packs.map(String));
    throw new GitStoreError(
      "corrupt_repository",
      `read the fill journal ${this.#path}: it differs from what was written`,
    );
  }
}
