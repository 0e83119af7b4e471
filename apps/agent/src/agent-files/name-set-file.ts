import { writeAtomically } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { ensureFolder } from "./places.ts";

/**
 * A set of names in a small JSON file of its own below the state folder: `{"<field>": ["a", "b"]}`. The command line
 * and the daemon both read it, so that they need no talk about it.
 */
export class NameSetFile {
  readonly #path: string;
  readonly #field: string;
  readonly #schema: z.ZodType<Record<string, readonly string[]>>;
  /** One change at a time: of two that both begin with what the file holds now, one would be lost. */
  readonly #changes = new Serializer();

  constructor(path: string, field: string) {
    this.#path = path;
    this.#field = field;
    this.#schema = z.record(z.string(), z.array(z.string()));
  }

  /** None if the file is missing or damaged. */
  async read(): Promise<ReadonlySet<string>> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      return new Set(this.#schema.parse(value)[this.#field]);
    } catch {
      return new Set();
    }
  }

  /** Puts a name in or takes it out. Gives whether that changed anything. */
  set(name: string, present: boolean): Promise<boolean> {
    return this.#changes.run(() => this.#set(name, present));
  }

  async #set(name: string, present: boolean): Promise<boolean> {
    const names = new Set(await this.read());
    if (names.has(name) === present) return false;
    if (present) names.add(name);
    else names.delete(name);
    await ensureFolder(dirname(this.#path));
    await writeAtomically(this.#path, `${JSON.stringify({ [this.#field]: [...names].toSorted() })}\n`);
    return true;
  }
}
