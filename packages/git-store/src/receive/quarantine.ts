import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../durable.ts";
import { indexPack, type IndexPackOptions } from "../index-pack/index-pack.ts";
import type { Pack } from "../pack/pack.ts";
import { hasCode } from "../errors.ts";
import { temporaryName } from "../repository/leftovers.ts";
import { OWNER } from "../repository/owner.ts";
import type { Repository } from "../repository/repository.ts";

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
  readonly #keepText = `receive-pack ${OWNER} ${randomUUID()}\n`;
  #keepPath: string | undefined;
  #isMigrated = false;

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
      const view = repository.withFolder(folder);
      return new Quarantine(view, folder, name);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Variables with which stock git sees the view, for hooks that run it. After {@link migrate} it needs no folder of its own. */
  get environment(): Readonly<Record<string, string>> {
    if (this.#isMigrated) return { GIT_DIR: this.view.path };
    return {
      GIT_DIR: this.view.path,
      GIT_OBJECT_DIRECTORY: this.#folder,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(this.view.path, "objects"),
      GIT_QUARANTINE_PATH: this.#folder,
    };
  }

  /**
   * Moves the pack into the repository. Until {@link close} a `.keep` file protects it from `git repack`, because refs do not reach it
   * yet. The same pack may be there from a push whose refs were refused; it is protected, too.
   */
  async migrate(): Promise<void> {
    this.#isMigrated = true;
    const name = this.#name;
    if (name === undefined) return;
    const from = join(this.#folder, "pack");
    const keepPath = join(this.#target, `${name}.keep`);
    try {
      await writeFile(keepPath, this.#keepText, { flag: "wx" });
      this.#keepPath = keepPath;
    } catch (error) {
      // Somebody else keeps the pack.
      if (!hasCode(error, "EEXIST")) throw error;
    }
    if (existsSync(join(this.#target, `${name}.idx`))) return;
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
    if (keepPath !== undefined && (await readFile(keepPath, "utf8").catch(() => "")) === this.#keepText) {
      await rm(keepPath, { force: true });
    }
  }
}
