import { join } from "node:path";
import type { Secret } from "@devplat/base";
import type { Database, EncryptionKeys } from "./database.ts";
import { requireCurrent } from "./migration-state.ts";
import { sqlDatabase } from "./sql/sql-database.ts";
import type { Store } from "./store.ts";
import type { VaultSettings } from "./vault/vault-database.ts";

/** File in the data folder, where `database.dsn` is not set. */
export const DATABASE_FILE = "svc.db";

export interface DatabaseSettings {
  readonly driver: "sqlite" | "postgres" | "vault";
  readonly dsn: Secret | undefined;
  readonly vault: Omit<VaultSettings, "address">;
  readonly dataDir: string;
  /** Maximum concurrent connections to a database server. */
  readonly maxConnections: number;
}

/**
 * Opens the store; the database must be current, or is made so, if `migrateNow`.
 *
 * @param keys asked only where secrets are encrypted by us
 * @throws SvcError `config_refused`, `database_unavailable`, `database_behind`, `database_ahead`, `encryption_key`
 */
export async function openStore(
  settings: DatabaseSettings,
  keys: () => Promise<EncryptionKeys>,
  migrateNow: boolean,
): Promise<Store> {
  // First: that the key is missing is what somebody who sets the service up must hear before anything is made.
  const known = settings.driver === "vault" ? undefined : await keys();
  const database = await openDatabase(settings);
  try {
    if (migrateNow) await database.migrate();
    requireCurrent(await database.state());
    return await database.store(async () => known ?? keys());
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** File of the database. Undefined: it is on a server. */
export async function databaseFile({ driver, dsn, dataDir }: DatabaseSettings): Promise<string | undefined> {
  if (driver !== "sqlite") return undefined;
  const { sqlitePath } = await import("./sqlite/open.ts");
  return dsn === undefined ? join(dataDir, DATABASE_FILE) : sqlitePath(dsn.reveal());
}

/** Opens the database as it is. @throws SvcError `config_refused`, `database_unavailable` */
export async function openDatabase(settings: DatabaseSettings): Promise<Database> {
  const { driver, dsn, maxConnections, vault } = settings;
  // Each backend's libraries are loaded only where it is used: they cost start-up time.
  if (driver === "vault") {
    const { openVault } = await import("./vault/vault-database.ts");
    return openVault({ ...vault, address: dsn });
  }
  if (driver === "postgres") {
    const { openPostgres, requiredDsn } = await import("./postgres/open.ts");
    const { postgresSpecifics } = await import("./postgres/specifics.ts");
    const server = requiredDsn(dsn);
    return sqlDatabase({
      db: await openPostgres({ dsn: server, maxConnections }),
      openForMigration: async () => openPostgres({ dsn: server, maxConnections: 2, forMigration: true }),
      specifics: postgresSpecifics(server),
    });
  }
  const { openSqlite, sqliteSpecifics } = await import("./sqlite/open.ts");
  const path = (await databaseFile(settings)) ?? DATABASE_FILE;
  return sqlDatabase({ db: await openSqlite(path), specifics: sqliteSpecifics });
}
