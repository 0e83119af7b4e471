import { randomBytes } from "node:crypto";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ifExists } from "@devplat/base";

/** Folder for removed repositories until their files are deleted. Names of owners do not begin with a dot. */
const NAME = ".removed~";

/** Removes folders: a rename makes them disappear immediately, and their files are deleted in the background. */
export class RemovedFolder {
  readonly #path: string;
  readonly #removals = new Set<Promise<void>>();

  constructor(root: string) {
    this.#path = join(root, NAME);
  }

  /** Removes a folder if it exists. */
  async take(path: string): Promise<void> {
    const target = join(this.#path, randomBytes(12).toString("hex"));
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    const isThere = (await ifExists(rename(path, target).then(() => true))) ?? false;
    if (!isThere) return;
    const removal = rm(target, { recursive: true, force: true })
      .catch(() => undefined)
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Deletes files of removals that an ended process did not finish. */
  async clear(): Promise<void> {
    await rm(this.#path, { recursive: true, force: true });
  }

  /** Waits for removals in the background. */
  async settled(): Promise<void> {
    await Promise.all(this.#removals);
  }
}
