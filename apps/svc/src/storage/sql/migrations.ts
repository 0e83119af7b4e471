import { Migrator, type Kysely, type Migration, type MigrationResultSet } from "kysely";
import { SvcError } from "../../errors.ts";
import { refuseAhead, type MigrationState } from "../migration-state.ts";
import { withDatabaseErrors } from "./database-errors.ts";

/**
 * Applied in the order of their names. One that was released is never changed; a new one is added. The name of one that a
 * program which does not know it can live with ends in `_additive`: it only adds tables, or columns with a default.
 */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  "0001_initial": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema
        .createTable("cached_repositories")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("owner", "text", (column) => column.notNull())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("key", "text", (column) => column.notNull().unique())
        .addColumn("enabled", "integer", (column) => column.notNull())
        .addColumn("timeout_seconds", "integer")
        .addColumn("max_cache_size_mb", "integer")
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("updated_at", "bigint", (column) => column.notNull())
        .addColumn("version", "integer", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("users")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("login", "text", (column) => column.notNull())
        .addColumn("login_key", "text", (column) => column.notNull().unique())
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("credential", "text")
        .addColumn("credential_at", "bigint")
        .execute();
      await db.schema
        .createTable("sessions")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("token_hash", "text", (column) => column.notNull().unique())
        .addColumn("token_start", "text", (column) => column.notNull())
        .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
        .addColumn("role", "text", (column) => column.notNull())
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("tokens")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("type", "text", (column) => column.notNull())
        .addColumn("token_hash", "text", (column) => column.notNull().unique())
        .addColumn("token_start", "text", (column) => column.notNull())
        .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
        .addColumn("repositories", "text", (column) => column.notNull())
        .addColumn("scopes", "text", (column) => column.notNull())
        .addColumn("description", "text")
        .addColumn("session_id", "text")
        .addColumn("ip_allow", "text", (column) => column.notNull())
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint")
        .addColumn("revoked_at", "bigint")
        .addColumn("last_used_at", "bigint")
        .addColumn("last_ip", "text")
        .addColumn("use_count", "bigint", (column) => column.notNull())
        .execute();
      await db.schema.createIndex("tokens_by_user").on("tokens").columns(["user_id", "created_at"]).execute();
    },
  },
  "0002_accounts_apps_audit": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema.alterTable("users").addColumn("host_user_id", "text").execute();
      await db.schema.alterTable("users").addColumn("last_login_at", "bigint").execute();
      await db.schema.createIndex("users_by_host_id").on("users").column("host_user_id").unique().execute();
      for (const column of ["name", "created_ip", "user_agent"]) {
        await db.schema.alterTable("sessions").addColumn(column, "text").execute();
      }
      await db.schema.alterTable("sessions").addColumn("last_seen_at", "bigint").execute();
      await db.schema.createIndex("sessions_by_user").on("sessions").column("user_id").execute();
      for (const column of ["app_id", "installation"]) {
        await db.schema.alterTable("tokens").addColumn(column, "text").execute();
      }
      await db.schema.createIndex("tokens_by_time").on("tokens").columns(["created_at", "id"]).execute();
      await db.schema
        .createTable("apps")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("app_id", "text", (column) => column.notNull().unique())
        .addColumn("slug", "text", (column) => column.notNull())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("owner_login", "text")
        .addColumn("client_id", "text")
        .addColumn("private_key", "text", (column) => column.notNull())
        .addColumn("webhook_secret", "text")
        .addColumn("is_default", "integer", (column) => column.notNull())
        .addColumn("source", "text", (column) => column.notNull())
        .addColumn("created_at", "bigint", (column) => column.notNull())
        .addColumn("updated_at", "bigint", (column) => column.notNull())
        .addColumn("version", "integer", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("one_time")
        .addColumn("kind", "text", (column) => column.notNull())
        .addColumn("key", "text", (column) => column.notNull())
        .addColumn("value", "text", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull())
        .addPrimaryKeyConstraint("one_time_key", ["kind", "key"])
        .execute();
      await db.schema
        .createTable("leases")
        .addColumn("name", "text", (column) => column.primaryKey())
        .addColumn("holder", "text", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull())
        .execute();
      // No reference to users: what somebody did stays written down after the user is gone.
      await db.schema
        .createTable("audit")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("at", "bigint", (column) => column.notNull())
        .addColumn("action", "text", (column) => column.notNull())
        .addColumn("outcome", "text", (column) => column.notNull())
        .addColumn("actor_kind", "text", (column) => column.notNull())
        .addColumn("actor_login", "text")
        .addColumn("actor_key", "text")
        .addColumn("credential_id", "text")
        .addColumn("target", "text")
        .addColumn("target_key", "text")
        .addColumn("remote_address", "text")
        .addColumn("request_id", "text")
        .addColumn("details", "text")
        .execute();
      await db.schema.createIndex("audit_by_time").on("audit").columns(["at", "id"]).execute();
      await db.schema.createIndex("audit_by_actor").on("audit").columns(["actor_key", "at"]).execute();
      await db.schema.createIndex("audit_by_target").on("audit").columns(["target_key", "at"]).execute();
    },
  },
  "0003_tokens_minted_by": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema.alterTable("tokens").addColumn("requests_per_minute", "integer").execute();
      for (const table of ["tokens", "sessions"]) {
        await db.schema.alterTable(table).addColumn("minted_by", "text").execute();
      }
      await db.schema
        .createIndex("tokens_by_session")
        .on("tokens")
        .columns(["minted_by", "created_at"])
        .execute();
    },
  },
  "0004_coordination_additive": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema
        .alterTable("leases")
        .addColumn("fence", "bigint", (column) => column.notNull().defaultTo(0))
        .execute();
      await db.schema
        .createTable("repository_epochs")
        .addColumn("key", "text", (column) => column.primaryKey())
        .addColumn("epoch", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("changes")
        .addColumn("topic", "text", (column) => column.primaryKey())
        .addColumn("count", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("instances")
        .addColumn("id", "text", (column) => column.primaryKey())
        .addColumn("host_name", "text", (column) => column.notNull())
        .addColumn("version", "text", (column) => column.notNull())
        .addColumn("ready", "integer", (column) => column.notNull())
        .addColumn("started_at", "bigint", (column) => column.notNull())
        .addColumn("reported_at", "bigint", (column) => column.notNull())
        .addColumn("figures", "text")
        .addColumn("figures_at", "bigint")
        .execute();
      await db.schema
        .createTable("shared_fetches")
        .addColumn("key", "text", (column) => column.primaryKey())
        .addColumn("holder", "text", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .addColumn("state", "text", (column) => column.notNull())
        .addColumn("bytes", "bigint", (column) => column.notNull())
        .addColumn("expected_bytes", "bigint")
        .addColumn("is_awaited", "integer", (column) => column.notNull())
        .addColumn("started_at", "bigint", (column) => column.notNull())
        .addColumn("expires_at", "bigint", (column) => column.notNull())
        .execute();
      await db.schema
        .createTable("manifest_pointers")
        .addColumn("key", "text", (column) => column.primaryKey())
        .addColumn("name", "text", (column) => column.notNull())
        .addColumn("generation", "bigint", (column) => column.notNull())
        .addColumn("fence", "bigint", (column) => column.notNull())
        .execute();
    },
  },
  "0005_instance_address_additive": {
    async up(db: Kysely<unknown>): Promise<void> {
      for (const column of ["address", "manifest_key_id"])
        await db.schema.alterTable("instances").addColumn(column, "text").execute();
    },
  },
  "0006_settings_digests_additive": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema.alterTable("instances").addColumn("settings_digests", "text").execute();
    },
  },
  "0007_seed_additive": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema.alterTable("cached_repositories").addColumn("seed", "integer").execute();
    },
  },
  "0008_bundles_additive": {
    async up(db: Kysely<unknown>): Promise<void> {
      await db.schema.alterTable("cached_repositories").addColumn("bundles", "integer").execute();
    },
  },
};

/** Names of all migrations of this program, in their order. */
export const MIGRATION_NAMES: readonly string[] = Object.keys(MIGRATIONS).toSorted();

export async function migrationState<T>(db: Kysely<T>): Promise<MigrationState> {
  const known = MIGRATION_NAMES;
  const applied = await withDatabaseErrors(async () => appliedMigrations(db));
  return {
    applied: applied.filter((name) => known.includes(name)),
    pending: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

const APPLIED = "kysely_migration";

async function appliedMigrations<T>(db: Kysely<T>): Promise<readonly string[]> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  if (!tables.some(({ name }) => name === APPLIED)) return [];
  const rows = await (db as unknown as Kysely<{ [APPLIED]: { name: string } }>)
    .selectFrom(APPLIED)
    .select("name")
    .execute();
  return rows.map(({ name }) => name).toSorted();
}

/**
 * Applies what is pending, all or nothing. Several processes may run it concurrently.
 *
 * @returns the names of the migrations that were applied now
 * @throws SvcError `database_ahead`, or `database_unavailable` naming the migration that failed
 */
export async function migrate<T>(db: Kysely<T>): Promise<readonly string[]> {
  return applyWith(db, async (migrator) => migrator.migrateToLatest());
}

/** The same as {@link migrate}, up to one of the migrations. No other process may use the database. */
export async function migrateTo<T>(db: Kysely<T>, last: string): Promise<readonly string[]> {
  return applyWith(db, async (migrator) => migrator.migrateTo(last));
}

async function applyWith<T>(
  db: Kysely<T>,
  apply: (migrator: Migrator) => Promise<MigrationResultSet>,
): Promise<readonly string[]> {
  const before = await migrationState(db);
  refuseAhead(before);
  // The migrator refuses a database with additive migrations of a newer program.
  if (before.pending.length === 0) return [];
  const migrator = new Migrator({ db, provider: { getMigrations: async () => ({ ...MIGRATIONS }) } });
  const { error, results = [] } = await apply(migrator);
  if (error !== undefined) {
    const failed = results.find(({ status }) => status === "Error")?.migrationName ?? "the first";
    throw new SvcError("database_unavailable", `Migration "${failed}" failed; the database is as it was`, {
      cause: error,
    });
  }
  return results.filter(({ status }) => status === "Success").map(({ migrationName }) => migrationName);
}
