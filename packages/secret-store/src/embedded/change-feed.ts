import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { SecretChange } from "../contract.ts";

/** Rows of the change table that are kept; a reader further behind is told that anything may have changed. */
const CHANGES_KEPT = 1_000;
/**
 * Look at the table this often even if the file system reports nothing, in milliseconds: some network file systems
 * never do. Where it does, a change is seen at once.
 */
const FALLBACK_POLL_MS = 1_000;
/**
 * The log is written, then made durable, then the commit becomes visible: at the time of the file event there is
 * mostly nothing to see. After one, look again after this many milliseconds, then at growing distances.
 */
const FIRST_LOOK_MS = 2;
const LOOK_FACTOR = 1.5;

/** Adds to the change table, inside the caller's transaction. */
export function recordChange(database: DatabaseSync, path: string, kind: SecretChange["kind"]): void {
  const { lastInsertRowid } = database
    .prepare("INSERT INTO change (path, kind) VALUES (?, ?)")
    .run(path, kind);
  database.prepare("DELETE FROM change WHERE sequence <= ?").run(Number(lastInsertRowid) - CHANGES_KEPT);
}

/** The position after the newest change. */
export function newestChange(database: DatabaseSync): number {
  return Number(database.prepare("SELECT max(sequence) AS newest FROM change").get()?.["newest"] ?? 0);
}

/**
 * The changes after `position` below `root`, those of other processes too, until the signal fires.
 *
 * Every commit appends to the write-ahead log, so a file watch on it costs nothing while nobody writes.
 */
export async function* followChanges(
  database: DatabaseSync,
  file: string,
  root: string,
  position: number,
  signal: AbortSignal,
): AsyncGenerator<SecretChange> {
  const log = `${basename(file)}-wal`;
  let wake = (): void => undefined;
  let stirred = true;
  let pauseMs = FIRST_LOOK_MS;
  const watcher = watch(dirname(file), (_event, name) => {
    if (name !== null && name !== log) return;
    stirred = true;
    wake();
  });
  // The fallback poll still sees every change.
  watcher.on("error", () => watcher.close());
  const select = database.prepare(
    "SELECT sequence, path, kind FROM change WHERE sequence > ? ORDER BY sequence",
  );
  try {
    while (!signal.aborted && database.isOpen) {
      pauseMs = stirred ? FIRST_LOOK_MS : Math.min(FALLBACK_POLL_MS, pauseMs * LOOK_FACTOR);
      stirred = false;
      for (const row of select.all(position)) {
        const sequence = Number(row["sequence"]);
        if (sequence > position + 1) yield { path: "", kind: "written" };
        position = sequence;
        const path = String(row["path"]);
        if (!path.startsWith(root)) continue;
        yield { path: path.slice(root.length), kind: row["kind"] === "deleted" ? "deleted" : "written" };
      }
      if (stirred) continue;
      const waiting = new AbortController();
      wake = () => waiting.abort();
      await sleepFor(pauseMs, undefined, {
        signal: AbortSignal.any([signal, waiting.signal]),
      }).catch(() => undefined);
    }
  } finally {
    watcher.close();
  }
}
