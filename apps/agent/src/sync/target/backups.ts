import { ifExists, writeAtomically } from "@devplat/base";
import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../../agent-files/places.ts";

/** One file as it was before a rule first touched it. */
export interface Backup {
  readonly path: string;
  readonly mode: number;
  /** ISO 8601. */
  readonly takenAt: string;
  readonly content: Buffer;
}

/** `<state>/backups/<rule>/<hash of the path>`: kept once, never replaced, always with mode 0600. */
export class Backups {
  readonly #folder: string;

  constructor(state: string) {
    this.#folder = join(state, "backups");
  }

  /** Keeps a copy unless this rule already has one of this file. */
  async keepFirst(
    rule: string,
    file: { path: string; mode: number; content: Buffer },
    now: Date,
  ): Promise<void> {
    const folder = join(this.#folder, rule);
    const entry = join(folder, createHash("sha256").update(file.path).digest("hex").slice(0, 16));
    if ((await ifExists(readFile(`${entry}.json`))) !== undefined) return;
    await ensureFolder(this.#folder);
    await ensureFolder(folder);
    await writeAtomically(entry, file.content);
    // The description comes last: a backup counts only when it is whole.
    const description = { path: file.path, mode: file.mode & 0o7777, taken_at: now.toISOString() };
    await writeAtomically(`${entry}.json`, `${JSON.stringify(description)}\n`);
  }

  /** Every backup of a rule, oldest first. */
  async list(rule: string): Promise<Backup[]> {
    const folder = join(this.#folder, rule);
    const names = await readdir(folder).catch(() => []);
    const backups: Backup[] = [];
    for (const name of names.filter((entry) => entry.endsWith(".json"))) {
      const description = JSON.parse((await readFile(join(folder, name))).toString()) as {
        path: string;
        mode: number;
        taken_at: string;
      };
      const content = await readFile(join(folder, name.slice(0, -".json".length)));
      const { path, mode, taken_at: takenAt } = description;
      backups.push({ path, mode, takenAt, content });
    }
    return backups.toSorted((a, b) => a.takenAt.localeCompare(b.takenAt));
  }
}
