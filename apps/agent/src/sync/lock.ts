import { chmodSync, closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { systemCode } from "@devplat/base";
import { ensureFolder } from "../agent-files/places.ts";
import { AgentError } from "../errors.ts";

/** SQLITE_BUSY: another connection holds the lock. */
const SQLITE_BUSY = 5;
/** A cycle of another `agent sync` usually ends within this time. A longer wait looks like a hang. In milliseconds. */
const LOCK_WAIT_MS = 3000;

/**
 * The one writer of a user: an open exclusive SQLite transaction, which the operating system ends with the process,
 * however that ends. A lock file with a process id in it could outlive its process.
 */
export class WriterLock implements Disposable {
  readonly path: string;
  readonly #database: DatabaseSync;

  private constructor(path: string, database: DatabaseSync) {
    this.path = path;
    this.#database = database;
  }

  /**
   * @param state the state folder
   * @throws AgentError `locked` after {@link LOCK_WAIT_MS}
   */
  static async acquire(state: string, waitMs: number = LOCK_WAIT_MS): Promise<WriterLock> {
    await ensureFolder(state);
    const path = join(state, "lock.db");
    let database: DatabaseSync | undefined;
    try {
      createFile(path);
      database = new DatabaseSync(path, { timeout: waitMs });
      chmodSync(path, 0o600);
      database.exec("BEGIN EXCLUSIVE");
      return new WriterLock(path, database);
    } catch (error) {
      database?.close();
      const busy = error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY;
      throw new AgentError("locked", busy ? `another agent holds ${path}` : `cannot lock ${path}`, {
        cause: error,
        hint: busy
          ? "A running daemon syncs by itself; wait for the other command to end, or use Sync Now in the web UI."
          : "If it is damaged or no file, remove it; look whether the disk is full or read-only.",
      });
    }
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

/**
 * Makes the file for its user alone before SQLite would make it for others too, and perhaps fail after that. One that is
 * there is not opened: closing it would end the locks that this process holds on it (fcntl).
 */
function createFile(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
}
