import { writeAtomically } from "@devplat/base";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ensureFolder } from "../config/places.ts";

const schema = z.object({ skipped: z.array(z.string()) });

/** The enrolments that the user has skipped, in `<state>/enrolments.json`; over restarts. */
export class Skips {
  readonly #folder: string;

  /** @param state the state folder */
  constructor(state: string) {
    this.#folder = state;
  }

  /** Keys; none if the file is missing or damaged. */
  async read(): Promise<ReadonlySet<string>> {
    try {
      const value: unknown = JSON.parse(await readFile(this.#path(), "utf8"));
      return new Set(schema.parse(value).skipped);
    } catch {
      return new Set();
    }
  }

  async set(key: string, skipped: boolean): Promise<void> {
    const keys = new Set(await this.read());
    if (keys.has(key) === skipped) return;
    if (skipped) keys.add(key);
    else keys.delete(key);
    await ensureFolder(this.#folder);
    await writeAtomically(this.#path(), `${JSON.stringify({ skipped: [...keys].toSorted() })}\n`);
  }

  #path(): string {
    return join(this.#folder, "enrolments.json");
  }
}
