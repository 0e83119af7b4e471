import { watch } from "node:fs";
import { basename, dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as sleepFor } from "node:timers/promises";
import type { SecretChange } from "../contract.ts";

/** Maximum rows of the change table. A reader that is further behind gets a gap: anything may have changed. */
const CHANGES_KEPT = 1_000;
/**
 * Interval for reading the table without a file event, in milliseconds. Some network file systems report no events.
 * With events, a change is found immediately.
 */
const FALLBACK_POLL_MS = 1_000;
/**
 * Wait after a file event, in milliseconds; the waits grow. SQLite writes the log, makes it durable, and then makes the
 * commit visible. So the commit is mostly not visible at the time of the event.
 */
const FIRST_LOOK_MS = 2;
const LOOK_FACTOR = 1.5;

/** Adds a change to the change table, in the caller's transaction. */
export function recordChange(database: DatabaseSync, path: string, kind: SecretChange["kind"]): void {
  const { lastInsertRowid } = database
    .prepare("INSERT INTO change (path, kind) VALUES (?, ?)")
    .run(path, kind);
  database.prepare("DELETE FROM change WHERE sequence <= ?").run(Number(lastInsertRowid) - CHANGES_KEPT);
}

/** Position after the newest change. */
export function newestChange(database: DatabaseSync): number {
  return Number(database.prepare("SELECT max(sequence) AS newest FROM change").get()?.["newest"] ?? 0);
}

/**
 * Reports changes after `position` below `root` until the signal fires, including changes of other processes.
 *
 * Every commit appends to the write-ahead log. So a file watch on the log needs no work while nothing is written.
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
  // The fallback poll still finds every change.
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
