import { join } from "node:path";
import type { Secret } from "@devplat/base";
import type { Kysely } from "kysely";
import { SvcError } from "../errors.ts";
import { SecretBox } from "./secret-box.ts";
import { migrate, migrationState, requireMigrated, type MigrationState } from "./sql/migrations.ts";
import { unknownKeys } from "./sql/rekey.ts";
import { SqlStore } from "./sql/sql-store.ts";
import type { Tables } from "./sql/tables.ts";
import { isUniqueViolation, openSqlite, sqlitePath } from "./sqlite/open.ts";
import type { Store } from "./store.ts";

/** File in the data folder, where `database.dsn` is not set. */
const DATABASE_FILE = "svc.db";

export interface DatabaseSettings {
  readonly dsn: Secret | undefined;
  readonly dataDir: string;
}

/** Opens the store; the database must be migrated, or is now, if `migrateNow`. */
export async function openStore(
  settings: DatabaseSettings,
  keys: { readonly current: Secret; readonly previous: Secret | undefined },
  migrateNow: boolean,
): Promise<Store> {
  const db = await openDatabase(settings);
  try {
    if (migrateNow) await migrate(db);
    await requireMigrated(db);
    const box = new SecretBox(keys.current, keys.previous);
    await requireKnownKeys(db, box);
    return new SqlStore({ db, box, isUniqueViolation });
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

/** Applies what is pending, and tells what that was. */
export async function migrateDatabase(settings: DatabaseSettings): Promise<readonly string[]> {
  return withDatabase(settings, migrate);
}

export async function databaseState(settings: DatabaseSettings): Promise<MigrationState> {
  return withDatabase(settings, migrationState);
}

async function withDatabase<T>(
  settings: DatabaseSettings,
  action: (db: Kysely<Tables>) => Promise<T>,
): Promise<T> {
  const db = await openDatabase(settings);
  try {
    return await action(db);
  } finally {
    await db.destroy();
  }
}

async function openDatabase({ dsn, dataDir }: DatabaseSettings): Promise<Kysely<Tables>> {
  return openSqlite(dsn === undefined ? join(dataDir, DATABASE_FILE) : sqlitePath(dsn.reveal()));
}

/** Better to refuse the start than to fail at the first use of a secret, hours later. */
async function requireKnownKeys(db: Kysely<Tables>, box: SecretBox): Promise<void> {
  const unknown = await unknownKeys(db, box);
  if (unknown.length === 0) return;
  throw new SvcError(
    "encryption_key",
    `The database holds secrets that were encrypted with another key (id ${unknown.join(", ")})`,
    { hint: "Set SVC_ENCRYPTION_KEY, or SVC_ENCRYPTION_KEY_PREVIOUS, to that key." },
  );
}
