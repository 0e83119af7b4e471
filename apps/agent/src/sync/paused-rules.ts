import { writeAtomically } from "@devplat/base";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ensureFolder } from "../config/places.ts";

const schema = z.object({ rules: z.array(z.string()) });

/**
 * The rules that somebody has paused by hand, in `<state>/paused.json`, apart from those that the configuration pauses.
 * Read in each cycle, so that the command line and the daemon need no talk about it.
 */
export class PausedRules {
  readonly #folder: string;

  /** @param state the state folder */
  constructor(state: string) {
    this.#folder = state;
  }

  /** Names; none if the file is missing or damaged. */
  async read(): Promise<ReadonlySet<string>> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#path(), "utf8"));
      return new Set(schema.parse(value).rules);
    } catch {
      return new Set();
    }
  }

  /** Pauses a rule, or lets it go on. Gives whether that changed anything. */
  async set(rule: string, paused: boolean): Promise<boolean> {
    const rules = new Set(await this.read());
    if (rules.has(rule) === paused) return false;
    if (paused) rules.add(rule);
    else rules.delete(rule);
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${JSON.stringify({ rules: [...rules].toSorted() })}\n`);
    return true;
  }

  #path(): string {
    return join(this.#folder, "paused.json");
  }
}
