import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";
import { readSealed, writeSealed } from "@devplat/base/sealed-file";

/** File in the folder of the repository. */
const FILE = "checked.json";

/**
 * Remembers over restarts which packs of a repository were read completely and are sound, by size, time and inode.
 * Reading a large pack takes seconds. Later reads still check the checksum of each entry.
 */
export class PacksKnownSound {
  readonly #repository: string;

  constructor(repositoryPath: string) {
    this.#repository = repositoryPath;
  }

  /** Returns those of the names that are not known to be sound. */
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
   * Records sound packs. After a failure they are only checked again.
   *
   * @param names all packs of the repository; known ones among them stay known
   * @param checked those of them that are sound now
   */
  async record(names: readonly string[], checked: readonly string[]): Promise<void> {
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

  /** Records that all packs are sound. This process hashed what it wrote, so the next start need not read it again. */
  async recordAll(names: readonly string[]): Promise<void> {
    await this.record(names, await this.unchecked(names));
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
