import type { Readable } from "node:stream";
import type { Secret } from "@devplat/base";
import { sql, type Kysely } from "kysely";
import type { AuditRecord } from "../audit/audit-store.ts";
import { SvcError } from "../errors.ts";
import type { NewContent, TableRows } from "../storage/database-content.ts";
import { sqlAudit } from "../storage/sql/audit.ts";
import { insertRows, tableRows } from "../storage/sql/content.ts";
import { MIGRATION_NAMES, migrate, migrateTo } from "../storage/sql/migrations.ts";
import { rekeyDatabase, unknownKeys } from "../storage/sql/rekey.ts";
import type { Tables } from "../storage/rows/tables.ts";
import { countValidTokens, isValidAt } from "../storage/sql/valid-tokens.ts";
import { SecretBox } from "../storage/secret-box.ts";
import { openSqlite } from "../storage/sqlite/open.ts";
import { refusedBackup, type BackupHeader, type BackupRow } from "./backup-format.ts";
import { readBackup, type BackupVisitor, type ReadBackup } from "./backup-reader.ts";
import type { Unlocking } from "./encryption.ts";
import { checkRow, tableForms, type TableForm } from "./row-check.ts";

/**
 * SQLite's name of a database in a temporary file. The file has no name from the beginning, so nothing remains of it
 * after this process has ended in any way. Its folder is SQLITE_TMPDIR, or else TMPDIR, or else /var/tmp.
 */
const TEMPORARY = "";
/** SQLITE_CONSTRAINT (sqlite.org/rescode.html), in the lowest byte of all its kinds. */
const SQLITE_CONSTRAINT = 19;

/** Owner and name of a listed repository. */
export interface ListedRepository {
  readonly owner: string;
  readonly name: string;
}

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
   * Reads a backup to its end, and keeps no row: it needs no space. It does not compare rows with each other.
   *
   * @param progress called with the rows so far
   * @throws SvcError `backup_refused`, `backup_locked`
   */
  static async check(
    file: Readable,
    unlocking: Unlocking,
    progress: (rows: number) => void,
  ): Promise<ReadBackup> {
    const db = await openSqlite(TEMPORARY);
    try {
      return await readBackup(file, unlocking, new RowChecks(db, progress));
    } finally {
      await db.destroy();
    }
  }

  /**
   * Encrypts secrets for the key of the database that is restored.
   *
   * @param keys of the backup, as far as they are known, and the previous key of the configuration
   * @throws SvcError `encryption_key`: a secret needs a key that is not here
   */
  async encryptFor(current: Secret, keys: readonly Secret[]): Promise<void> {
    const own = new SecretBox(current);
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

  async listed(): Promise<readonly ListedRepository[]> {
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

/** Checks rows one by one, by the schema of their time. */
class RowChecks implements BackupVisitor {
  readonly #db: Kysely<Tables>;
  readonly #progress: (rows: number) => void;
  #forms: ReadonlyMap<string, TableForm> = new Map();
  #rows = 0;

  /** @param db a temporary database, which gets the schema of the backup */
  constructor(db: Kysely<Tables>, progress: (rows: number) => void) {
    this.#db = db;
    this.#progress = progress;
  }

  async header({ migrations, program }: BackupHeader): Promise<void> {
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
    this.#forms = await tableForms(this.#db);
  }

  async rows(table: string, rows: readonly BackupRow[]): Promise<void> {
    const form = this.#forms.get(table);
    if (form === undefined) throw refusedBackup(`it has a table ${table}, which its version did not have`);
    for (const row of rows) checkRow(table, form, row);
    this.#rows += rows.length;
    this.#progress(this.#rows);
  }
}

/** Puts rows into the temporary database, at the state of migration that they have. */
class Staging extends RowChecks {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>, progress: (rows: number) => void) {
    super(db, progress);
    this.#db = db;
  }

  override async header(header: BackupHeader): Promise<void> {
    await super.header(header);
    // References are checked once, at the end. Otherwise the order of the tables in the file would matter.
    await sql`PRAGMA foreign_keys = OFF`.execute(this.#db);
  }

  override async rows(table: string, rows: readonly BackupRow[]): Promise<void> {
    await super.rows(table, rows);
    try {
      await insertRows(this.#db, { table, rows } satisfies TableRows);
    } catch (error) {
      if (!isConstraint(error)) throw error;
      throw refusedBackup(`rows of table ${table} contradict each other`);
    }
  }

  async complete(): Promise<void> {
    const { rows } = await sql`PRAGMA foreign_key_check`.execute(this.#db);
    if (rows.length > 0) throw refusedBackup("rows name users that it does not have");
  }
}

function isConstraint(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_CONSTRAINT;
}
