import type { Readable } from "node:stream";
import type { Secret } from "@devplat/base";
import { sql, type Kysely } from "kysely";
import type { AuditRecord } from "../audit/audit-store.ts";
import { SvcError } from "../errors.ts";
import type { NewContent, TableRows } from "../storage/database-content.ts";
import { sqlAudit } from "../storage/sql/audit.ts";
import { CONTENT_TABLES, insertRows, tableRows } from "../storage/sql/content.ts";
import { MIGRATION_NAMES, migrate, migrateTo } from "../storage/sql/migrations.ts";
import { rekeyDatabase, unknownKeys } from "../storage/sql/rekey.ts";
import type { Tables } from "../storage/sql/tables.ts";
import { countValidTokens, isValidAt } from "../storage/sql/valid-tokens.ts";
import { SecretBox } from "../storage/secret-box.ts";
import { openSqlite } from "../storage/sqlite/open.ts";
import { refusedBackup, type BackupHeader, type BackupRow } from "./backup-format.ts";
import { readBackup, type ReadBackup } from "./backup-reader.ts";
import type { Unlocking } from "./encryption.ts";

/**
 * SQLite's name of a database in a temporary file. The file has no name from the beginning, so nothing remains of it
 * after this process has ended in any way. Its folder is SQLITE_TMPDIR, or else TMPDIR, or else /var/tmp.
 */
const TEMPORARY = "";
/** SQLITE_CONSTRAINT (sqlite.org/rescode.html), in the lowest byte of all its kinds. */
const SQLITE_CONSTRAINT = 19;

interface ColumnForm {
  readonly isText: boolean;
  readonly isNullable: boolean;
  readonly isRequired: boolean;
}

/** Columns whose text is JSON. The service could not read such a row. */
const JSON_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  tokens: ["repositories", "scopes", "ip_allow"],
  audit: ["details"],
};

/**
 * The rows of a backup of an SQL database, in a temporary database. There they are checked by the schema of their time, and
 * migrated, before the database that is restored changes.
 */
export class StagedBackup {
  readonly #db: Kysely<Tables>;
  readonly backup: ReadBackup;
  /** Migrations that the backup did not have yet. */
  readonly migrated: readonly string[];

  private constructor(db: Kysely<Tables>, backup: ReadBackup, migrated: readonly string[]) {
    this.#db = db;
    this.backup = backup;
    this.migrated = migrated;
  }

  /**
   * Reads a backup to its end. It must be closed.
   *
   * @param progress called with the rows so far
   * @throws SvcError `backup_refused`, `backup_locked`
   */
  static async read(
    file: Readable,
    unlocking: Unlocking,
    progress: (rows: number) => void,
  ): Promise<StagedBackup> {
    const db = await openSqlite(TEMPORARY);
    try {
      const staging = new Staging(db, progress);
      const backup = await readBackup(file, unlocking, staging);
      await staging.complete();
      return new StagedBackup(db, backup, await migrate(db));
    } catch (error) {
      await db.destroy();
      throw error;
    }
  }

  /**
   * Encrypts secrets for the key of the database that is restored.
   *
   * @param keys of the backup, as far as they are known
   * @throws SvcError `encryption_key`: a secret needs a key that is not here
   */
  async encryptFor(current: Secret, previous: Secret | undefined, keys: readonly Secret[]): Promise<void> {
    const own = new SecretBox(current, previous);
    if ((await unknownKeys(this.#db, own)).length === 0) return;
    for (const key of keys) await this.#tryKey(current, key);
    const missing = await unknownKeys(this.#db, own);
    if (missing.length === 0) return;
    throw new SvcError(
      "encryption_key",
      `Cannot restore: secrets in the backup were encrypted with another key (id ${missing.join(", ")}), and the backup does not have it`,
      { hint: "Set SVC_ENCRYPTION_KEY, or SVC_ENCRYPTION_KEY_PREVIOUS, to that key." },
    );
  }

  /** Encrypts under the current key everything that this key opens. */
  async #tryKey(current: Secret, key: Secret): Promise<void> {
    const box = new SecretBox(current, key);
    await rekeyDatabase(this.#db, box, () => undefined, { onlyKnown: true });
  }

  /** Ends login sessions. @returns the number of those that were valid */
  async endSessions(now: number): Promise<number> {
    const sessions = this.#db.deleteFrom("sessions").where("kind", "=", "session");
    await sessions.where("expires_at", "<=", now).execute();
    const { numDeletedRows } = await sessions.executeTakeFirst();
    return Number(numDeletedRows);
  }

  /** Revokes proxy and agent tokens, and ends administration tokens. @returns the number of those that were valid */
  async endTokens(now: number): Promise<number> {
    const count = await this.countTokens(now);
    await this.#db.updateTable("tokens").set({ revoked_at: now }).where(isValidAt(now)).execute();
    await this.#db.deleteFrom("sessions").where("kind", "=", "administration").execute();
    return count;
  }

  /** Adds a record to the audit. */
  async record(event: AuditRecord): Promise<void> {
    await sqlAudit(this.#db).append([event]);
  }

  /** Number of valid tokens, administration tokens included. */
  async countTokens(now: number): Promise<number> {
    return countValidTokens(this.#db, now);
  }

  /** Keys of the listed repositories: owner and name in lower case. */
  async listed(): Promise<readonly { readonly owner: string; readonly name: string }[]> {
    return this.#db.selectFrom("cached_repositories").select(["owner", "name"]).execute();
  }

  async epochs(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#db.selectFrom("repository_epochs").selectAll().execute();
    return new Map(rows.map(({ key, epoch }) => [key, epoch]));
  }

  tables(): NewContent["tables"] {
    return tableRows(this.#db, MIGRATION_NAMES);
  }

  async close(): Promise<void> {
    await this.#db.destroy();
  }
}

/** Puts rows into the temporary database, at the state of migration that they have. */
class Staging {
  readonly #db: Kysely<Tables>;
  readonly #progress: (rows: number) => void;
  #forms: ReadonlyMap<string, ReadonlyMap<string, ColumnForm>> = new Map();
  #rows = 0;

  constructor(db: Kysely<Tables>, progress: (rows: number) => void) {
    this.#db = db;
    this.#progress = progress;
  }

  async header({ content, migrations, program }: BackupHeader): Promise<void> {
    if (content !== "sql") throw refusedBackup("it is of another kind of database");
    const unknown = migrations.filter((name) => !MIGRATION_NAMES.includes(name));
    if (unknown.length > 0) {
      throw new SvcError(
        "database_ahead",
        `Cannot restore the backup: version ${program} wrote it, which is newer than this program (unknown: ${unknown.join(", ")})`,
        { hint: "Restore it with that version, or a later one." },
      );
    }
    const last = MIGRATION_NAMES.slice(0, migrations.length);
    if (migrations.join() !== last.join()) throw refusedBackup("its list of migrations has gaps");
    await migrateTo(this.#db, last.at(-1) ?? "");
    // References are checked once, at the end. Otherwise the order of the tables in the file would matter.
    await sql`PRAGMA foreign_keys = OFF`.execute(this.#db);
    const tables = await this.#db.introspection.getTables();
    const known = new Set<string>(CONTENT_TABLES.map(({ name }) => name));
    this.#forms = new Map(
      tables
        .filter(({ name }) => known.has(name))
        .map(({ name, columns }) => [
          name,
          new Map(
            columns.map((column) => [
              column.name,
              {
                isText: column.dataType.toLowerCase() === "text",
                isNullable: column.isNullable,
                isRequired: !column.isNullable && !column.hasDefaultValue,
              },
            ]),
          ),
        ]),
    );
  }

  async rows(table: string, rows: readonly BackupRow[]): Promise<void> {
    const form = this.#forms.get(table);
    if (form === undefined) throw refusedBackup(`it has a table ${table}, which its version did not have`);
    for (const row of rows) checkRow(table, form, row);
    try {
      await insertRows(this.#db, { table, rows } satisfies TableRows);
    } catch (error) {
      if (!isConstraint(error)) throw error;
      throw refusedBackup(`rows of table ${table} contradict each other`);
    }
    this.#rows += rows.length;
    this.#progress(this.#rows);
  }

  async complete(): Promise<void> {
    const { rows } = await sql`PRAGMA foreign_key_check`.execute(this.#db);
    if (rows.length > 0) throw refusedBackup("rows name users that it does not have");
  }
}

function checkRow(table: string, form: ReadonlyMap<string, ColumnForm>, row: BackupRow): void {
  for (const [column, value] of Object.entries(row)) {
    const known = form.get(column);
    const fits =
      known !== undefined &&
      (value === null ? known.isNullable : known.isText ? isText(value) : Number.isSafeInteger(value));
    if (!fits) throw refusedBackup(`table ${table} has a row with a wrong value of ${column.slice(0, 40)}`);
  }
  for (const [column, { isRequired }] of form) {
    if (isRequired && row[column] === undefined) {
      throw refusedBackup(`table ${table} has a row without ${column}`);
    }
  }
  for (const column of JSON_COLUMNS[table] ?? []) {
    const text = row[column];
    if (typeof text === "string" && !isJson(text)) {
      throw refusedBackup(`table ${table} has a row with a wrong value of ${column}`);
    }
  }
}

/** Postgres has no text with the character 0. */
function isText(value: unknown): boolean {
  return typeof value === "string" && !value.includes("\0");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isConstraint(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_CONSTRAINT;
}
