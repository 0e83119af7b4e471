import { link, mkdir, open, rename, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GitStoreError, hasCode } from "../errors.ts";
import { removeLeftovers, temporaryName } from "../repository/leftovers.ts";
import { removeEmptyFolders } from "./ref-files.ts";

/** Interval between two tries while another process holds the lock, ms. */
const RETRY_MS = 20;
/** Maximum tries to create the folder of a lock, which a process that deletes refs may remove. */
const MAX_FOLDER_TRIES = 20;

/**
 * A lock file of git (`<file>.lock`), which stock git respects. Its content becomes the file by {@link commit}.
 *
 * The lock is a second name of a temporary file that names its owner, so that `removeLeftovers` finds the locks of a killed process.
 * Stock git cannot do that, because the content of its lock is that of the ref.
 */
export class RefLock {
  /** Path of the locked file. */
  readonly path: string;
  readonly #temporary: string | undefined;
  #isHeld = true;

  private constructor(path: string, temporary: string | undefined) {
    this.path = path;
    this.#temporary = temporary;
  }

  /**
   * @param file path relative to the repository, such as `refs/heads/main`
   * @param waitMs maximum time to wait for another holder
   * @throws {GitStoreError} `locked`; `ref_conflict` if a part of its path is a file
   */
  static async acquire(
    repositoryPath: string,
    file: string,
    content: string,
    waitMs: number,
  ): Promise<RefLock> {
    const path = join(repositoryPath, file);
    const temporary = join(repositoryPath, temporaryName("reflock"));
    await writeFile(temporary, content, { flag: "wx", mode: 0o644 });
    try {
      const deadline = performance.now() + waitMs;
      for (let tries = 0; ; tries++) {
        const found = await tryLock(path, temporary, content);
        if (found === "linked") return new RefLock(path, temporary);
        if (found === "created") {
          await unlink(temporary);
          return new RefLock(path, undefined);
        }
        if (tries === 0) {
          await removeLeftovers(repositoryPath);
          continue;
        }
        if (performance.now() >= deadline) throw heldByAnother(path);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.5 + Math.random())));
      }
    } catch (error) {
      await unlink(temporary).catch(() => undefined);
      throw error;
    }
  }

  /** Flushes the content to disk. */
  async sync(): Promise<void> {
    const handle = await open(this.#lockPath, "r+");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** Makes the content of the lock that of the file, and releases the lock. If it fails, the lock is still held. */
  async commit(): Promise<void> {
    try {
      await rename(this.#lockPath, this.path);
    } catch (error) {
      if (!hasCode(error, "EISDIR", "ENOTEMPTY", "EEXIST")) throw error;
      // A ref below this name was deleted or refused, and left its folders.
      await removeEmptyFolders(this.path);
      await rename(this.#lockPath, this.path);
    }
    this.#isHeld = false;
    await this.#removeTemporary();
  }

  /** Releases the lock if it is held. The file stays as it is. */
  async release(): Promise<void> {
    // A second removal would take the lock of the next holder.
    if (!this.#isHeld) return;
    this.#isHeld = false;
    await unlink(this.#lockPath).catch(() => undefined);
    await this.#removeTemporary();
  }

  get #lockPath(): string {
    return `${this.path}.lock`;
  }

  async #removeTemporary(): Promise<void> {
    if (this.#temporary !== undefined) await unlink(this.#temporary).catch(() => undefined);
  }
}

/** @returns `created` on a file system without hard links, where a killed process leaves its lock, as stock git does */
async function tryLock(
  path: string,
  temporary: string,
  content: string,
): Promise<"linked" | "created" | "held"> {
  for (let tries = 0; ; tries++) {
    try {
      await link(temporary, `${path}.lock`);
      return "linked";
    } catch (error) {
      if (hasCode(error, "EEXIST")) return "held";
      if (hasCode(error, "ENOTDIR")) throw fileInTheWay(path, error);
      if (!hasCode(error, "ENOENT")) return await createLock(path, content);
      if (tries === MAX_FOLDER_TRIES) throw error;
      await makeFolder(path);
    }
  }
}

async function createLock(path: string, content: string): Promise<"created" | "held"> {
  try {
    await writeFile(`${path}.lock`, content, { flag: "wx", mode: 0o644 });
    return "created";
  } catch (error) {
    if (hasCode(error, "EEXIST")) return "held";
    throw error;
  }
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
  } catch (error) {
    if (hasCode(error, "EEXIST", "ENOTDIR")) throw fileInTheWay(path, error);
    if (!hasCode(error, "ENOENT")) throw error;
  }
}

function fileInTheWay(path: string, cause: unknown): GitStoreError {
  return new GitStoreError(
    "ref_conflict",
    `lock ${path}: a ref has the name of one of its folders. Delete that ref first`,
    { path },
    { cause },
  );
}

function heldByAnother(path: string): GitStoreError {
  return new GitStoreError(
    "locked",
    `lock ${path}: another process holds ${path}.lock. If no git process works in the repository, remove that file`,
    { path },
  );
}
