import { SvcError } from "../errors.ts";

/** Runs a restore. A full disk becomes an error that says so. @throws SvcError `backup_failed` */
export async function namingFullDisk<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (!isFull(error)) throw error;
    throw new SvcError("backup_failed", "Cannot restore: a disk is full. The database is as it was", {
      cause: error,
      hint: "The database needs space for twice its size during a restore, and the folder of temporary files (TMPDIR, or /var/tmp) for its size once.",
    });
  }
}

/** SQLITE_FULL (sqlite.org/rescode.html), or disk_full of Postgres. */
function isFull(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { errcode, code } = each as { errcode?: unknown; code?: unknown };
    if (errcode === 13 || code === "53100" || code === "ENOSPC") return true;
  }
  return false;
}
