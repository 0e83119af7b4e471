import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** In the repository's folder. */
const FILE = "checked.json";

/**
 * Remembers over restarts which packs of a repository were read through and found sound, by size, time and inode: a large
 * one takes seconds. What is read of them later is compared with the checksums of their entries all the same.
 */
export class CheckedPacks {
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
  }

  /** The names, of these, that are not known to be sound. */
  async unchecked(names: readonly string[]): Promise<string[]> {
    const known = await this.#read();
    const unknown: string[] = [];
    for (const name of names) {
      const stamp = await this.#stamp(name);
      if (stamp === undefined || known.get(name) !== stamp) unknown.push(name);
    }
    return unknown;
  }

  /**
   * Notes packs that are sound now. A failure only means that they are checked again.
   *
   * @param names all that are there; those that are known already keep what is known of them
   * @param checked those of them that were just read through
   */
  async note(names: readonly string[], checked: readonly string[]): Promise<void> {
    const known = await this.#read();
    const packs: Record<string, string> = {};
    for (const name of names) {
      const stamp = checked.includes(name) ? await this.#stamp(name) : known.get(name);
      if (stamp !== undefined) packs[name] = stamp;
    }
    const isSame =
      Object.keys(packs).length === known.size && names.every((name) => packs[name] === known.get(name));
    if (!isSame) await writeSealed(join(this.#repository, FILE), { packs }).catch(() => undefined);
  }

  async #read(): Promise<ReadonlyMap<string, string>> {
    const content = await readSealed(join(this.#repository, FILE)).catch(() => undefined);
    const { packs } = Object(content) as Record<string, unknown>;
    const entries = Object.entries(Object(packs) as Record<string, unknown>);
    return new Map(entries.map(([name, stamp]) => [name, String(stamp)]));
  }

  async #stamp(name: string): Promise<string | undefined> {
    const facts = await ifExists(stat(join(this.#repository, "objects", "pack", `${name}.pack`)));
    return facts === undefined ? undefined : `${facts.size} ${facts.mtimeMs} ${facts.ino}`;
  }
}
