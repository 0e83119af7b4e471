import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "@devplat/base";
import { Kysely, sql } from "kysely";
import { SvcError } from "../../errors.ts";
import { databaseReason } from "../sql/database-errors.ts";
import type { SqlSpecifics } from "../sql/specifics.ts";
import type { Tables } from "../rows/tables.ts";
import { nodeSqliteDialect } from "./dialect.ts";

/** Takes what people write as the connection string of a file database: a path, `file:path` or `sqlite:path`. */
export function sqlitePath(dsn: string): string {
  return dsn.replace(/^(?:file|sqlite):(?:\/\/(?=\/))?/, "").replace(/\?.*$/, "");
}

/**
 * Opens the database file, made with its folder when it is not there.
 *
 * @throws SvcError `database_unavailable` naming the file
 */
export async function openSqlite(path: string): Promise<Kysely<Tables>> {
  const db = new Kysely<Tables>({ dialect: nodeSqliteDialect(path) });
  try {
    if (path !== ":memory:") await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await sql`SELECT 1`.execute(db);
    return db;
  } catch (error) {
    await db.destroy().catch(() => undefined);
    const reason = databaseReason(error);
    const text = reason?.text ?? messageOf(error);
    throw new SvcError("database_unavailable", `Cannot open the database "${path}": ${text}`, {
      ...(reason !== undefined && { hint: reason.hint }),
      cause: error,
    });
  }
}

/** SQLITE_CONSTRAINT_PRIMARYKEY and SQLITE_CONSTRAINT_UNIQUE (sqlite.org/rescode.html). */
function isUniqueViolation(error: unknown): boolean {
  if (!(error instanceof Error) || !("errcode" in error)) return false;
  return error.errcode === 1555 || error.errcode === 2067;
}

/** Several processes on one file are on one machine, so the clock of the process is the clock of the database. */
export const sqliteSpecifics: SqlSpecifics = {
  isUniqueViolation,
  now: sql<number>`CAST(unixepoch('subsec') * 1000 AS integer)`,
  lockTables: undefined,
  notify: undefined,
  listen: undefined,
};
