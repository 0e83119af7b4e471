import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../durable.ts";
import { indexPack, type IndexPackOptions } from "../index-pack/index-pack.ts";
import type { Pack } from "../pack/pack.ts";
import { temporaryName } from "../repository/leftovers.ts";
import { OWNER } from "../repository/owner.ts";
import { Repository } from "../repository/repository.ts";

/**
 * Objects of a push in a folder of their own, as git keeps them (`tmp_objdir-incoming…`), so that a refused push leaves nothing.
 * `removeLeftovers` and `git gc` remove the folder of a killed process.
 */
export class Quarantine {
  /** The repository as it will be: it reads the new objects, too. Refs are those of now. */
  readonly view: Repository;
  /** The new pack. Undefined: the store has it already, or it is empty. */
  readonly pack: Pack | undefined;
  readonly #folder: string;
  readonly #target: string;
  readonly #name: string | undefined;
  #keepPath: string | undefined;

  private constructor(view: Repository, folder: string, name: string | undefined) {
    this.view = view;
    this.#folder = folder;
    this.#name = name;
    this.#target = join(view.path, "objects", "pack");
    this.pack = view.objects.packs.find((pack) => pack.path.startsWith(folder));
  }

  /**
   * Takes in a pack, thin or not. Without one, the view is the repository as it is.
   *
   * @throws {GitStoreError} as `indexPack`
   */
  static async open(
    repository: Repository,
    source: AsyncIterable<Uint8Array> | undefined,
    options: Omit<IndexPackOptions, "folder" | "format" | "bases">,
  ): Promise<Quarantine> {
    const folder = join(repository.path, "objects", temporaryName("objdir-incoming"));
    const { format, objects } = repository;
    try {
      await mkdir(join(folder, "pack"), { recursive: true });
      let name: string | undefined;
      if (source !== undefined) {
        objects.refresh();
        const made = await indexPack(source, {
          ...options,
          folder: join(folder, "pack"),
          format,
          bases: objects,
        });
        if (made.objects > 0) ({ name } = made);
      }
      const view = await Repository.open(repository.path, { extraFolders: [folder] });
      return new Quarantine(view, folder, name);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Variables with which stock git sees the view, for hooks that run it. */
  get environment(): Readonly<Record<string, string>> {
    return {
      GIT_DIR: this.view.path,
      GIT_OBJECT_DIRECTORY: this.#folder,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(this.view.path, "objects"),
      GIT_QUARANTINE_PATH: this.#folder,
    };
  }

  /**
   * Moves the pack into the repository. Until {@link close} a `.keep` file protects it from `git repack`, because refs do not reach it
   * yet.
   */
  async migrate(): Promise<void> {
    const name = this.#name;
    if (name === undefined || existsSync(join(this.#target, `${name}.idx`))) return;
    const from = join(this.#folder, "pack");
    const keepPath = join(this.#target, `${name}.keep`);
    await writeFile(keepPath, keepText());
    this.#keepPath = keepPath;
    for (const end of ["pack", "rev"])
      await rename(join(from, `${name}.${end}`), join(this.#target, `${name}.${end}`));
    await syncFolder(this.#target);
    await rename(join(from, `${name}.idx`), join(this.#target, `${name}.idx`));
    await syncFolder(this.#target);
  }

  /** Removes the folder, with the objects that were not migrated. */
  async close(): Promise<void> {
    this.view.close();
    await rm(this.#folder, { recursive: true, force: true });
    const keepPath = this.#keepPath;
    if (keepPath !== undefined && (await readFile(keepPath, "utf8").catch(() => "")) === keepText()) {
      await rm(keepPath, { force: true });
    }
  }
}

function keepText(): string {
  return `receive-pack ${OWNER}\n`;
}
