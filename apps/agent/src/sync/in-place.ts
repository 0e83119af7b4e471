import { ifExists, writeAtomically } from "@devplat/base";
import { createHash } from "node:crypto";
import { readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ensureFolder } from "../config/places.ts";

/**
 * The old content of files that are just being written in place, so that a crash in the middle loses nothing: what
 * is found here is taken as the file's content by the next write.
 */
export class InPlaceJournal {
  readonly #folder: string;

  /** @param state the state folder */
  constructor(state: string) {
    this.#folder = join(state, "in-place");
  }

  async begin(file: string, content: Buffer): Promise<void> {
    await ensureFolder(this.#folder);
    await writeAtomically(this.#entry(file), content);
  }

  async end(file: string): Promise<void> {
    await unlink(this.#entry(file));
  }

  /** What the file held before a write that did not finish; undefined if there was none. */
  async read(file: string): Promise<Buffer | undefined> {
    return await ifExists(readFile(this.#entry(file)));
  }

  #entry(file: string): string {
    return join(this.#folder, createHash("sha256").update(file).digest("hex"));
  }
}
