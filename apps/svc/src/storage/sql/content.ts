import { sql, type Kysely } from "kysely";
import { SvcError } from "../../errors.ts";
import type { ContentRow, DatabaseContent, NewContent, Replaced, TableRows } from "../database-content.ts";
import { higherEpochs, refuseContent } from "../replacement.ts";
import type { Tables } from "../rows/tables.ts";
import { refuseRunningInstances } from "../running-instances.ts";
import { countChange } from "./coordination/changes.ts";
import { withDatabaseErrors } from "./database-errors.ts";
import { MIGRATION_NAMES, migrationState } from "./migrations.ts";
import type { SqlSpecifics } from "./specifics.ts";
import { countValidTokens } from "./valid-tokens.ts";

interface ContentTable {
  readonly name: keyof Tables;
  /** Primary key, of one column with text. */
  readonly key: string;
  /** Migration that made the table. */
  readonly since: string;
}

/** Tables of a backup, in an order that satisfies their references. */
export const CONTENT_TABLES: readonly ContentTable[] = [
  { name: "users", key: "id", since: "0001_initial" },
  { name: "sessions", key: "id", since: "0001_initial" },
  { name: "tokens", key: "id", since: "0001_initial" },
  { name: "cached_repositories", key: "id", since: "0001_initial" },
  { name: "apps", key: "id", since: "0002_accounts_apps_audit" },
  { name: "repository_epochs", key: "key", since: "0004_coordination_additive" },
  { name: "manifest_pointers", key: "key", since: "0004_coordination_additive" },
  { name: "audit", key: "id", since: "0002_accounts_apps_audit" },
];

/**
 * Tables that a backup leaves out: pending sign-ins and counters of a minute, the state of running instances, and numbers that
 * must only grow.
 */
export const PASSING_TABLES: readonly (keyof Tables)[] = [
  "one_time",
  "leases",
  "changes",
  "instances",
  "shared_fetches",
];

/** Rows that are read and written together: some 100 KB in memory, and fewer parameters than SQLite's limit of 32,766. */
const BATCH_ROWS = 250;
/** Migration that made the table of instances. */
const INSTANCES_SINCE = "0004_coordination_additive";

/** Any table, with columns that only the database knows. */
type AnyTables = Record<string, Record<string, unknown>>;

/** The same database without our types: rows of a backup have the columns of their migration. */
function untyped(db: Kysely<Tables>): Kysely<AnyTables> {
  return db as unknown as Kysely<AnyTables>;
}

/**
 * Reads the content as of one moment. Other processes can go on writing.
 *
 * @throws SvcError `database_ahead`: a newer program may have tables that this one does not know
 */
export async function readContent<T>(
  db: Kysely<Tables>,
  use: (content: DatabaseContent) => Promise<T>,
): Promise<T> {
  return withDatabaseErrors(async () =>
    db
      .transaction()
      .setIsolationLevel("repeatable read")
      .setAccessMode("read only")
      .execute(async (snapshot) => {
        const { applied, unknown } = await migrationState(snapshot);
        if (unknown.length > 0) {
          throw new SvcError(
            "database_ahead",
            `Cannot back up the database: a newer version of this program migrated it (unknown: ${unknown.join(", ")})`,
            { hint: "Run the backup with that version." },
          );
        }
        return use({ migrations: applied, tables: tableRows(snapshot, applied) });
      }),
  );
}

/**
 * All rows of the tables that these migrations have made.
 *
 * @throws SvcError `database_unavailable`: readers of the rows must not take an error of the database for one of their own
 */
export async function* tableRows(
  db: Kysely<Tables>,
  migrations: readonly string[],
): AsyncGenerator<TableRows> {
  for (const { name, key, since } of CONTENT_TABLES) {
    if (!migrations.includes(since)) continue;
    for (let last: unknown; ;) {
      const ordered = untyped(db).selectFrom(name).selectAll().orderBy(key).limit(BATCH_ROWS);
      const query = last === undefined ? ordered : ordered.where(key, ">", last);
      const rows: ContentRow[] = await withDatabaseErrors(async () => query.execute());
      if (rows.length > 0) yield { table: name, rows };
      if (rows.length < BATCH_ROWS) break;
      last = rows.at(-1)?.[key];
    }
  }
}

/** Adds rows to a table. They may be any number. */
export async function insertRows(db: Kysely<Tables>, { table, rows }: TableRows): Promise<void> {
  for (let start = 0; start < rows.length; start += BATCH_ROWS) {
    await untyped(db)
      .insertInto(table)
      .values(rows.slice(start, start + BATCH_ROWS))
      .execute();
  }
}

/**
 * Refuses a database whose content must not be replaced. It may lack migrations.
 *
 * @param applied migrations of the database
 * @returns rows that it has, by table
 * @throws SvcError `database_in_use`: an instance uses it; `database_not_empty`: it has rows, and `replace` is not set
 */
export async function refuseReplacement(
  db: Kysely<Tables>,
  specifics: SqlSpecifics,
  replace: boolean,
  applied: readonly string[],
): Promise<Replaced["deleted"]> {
  return withDatabaseErrors(async () => {
    if (applied.includes(INSTANCES_SINCE)) await refuseRunning(db, specifics);
    const found = await countRows(db, applied);
    if (!replace) refuseContent(found);
    return found;
  });
}

/**
 * Puts content in place of what the database has, in one transaction. The database must be current.
 *
 * @throws SvcError `database_in_use`: an instance uses it; `database_not_empty`
 */
export async function replaceContent(
  db: Kysely<Tables>,
  specifics: SqlSpecifics,
  content: NewContent,
): Promise<Replaced> {
  return withDatabaseErrors(async () =>
    db.transaction().execute(async (transaction) => {
      // An instance registers before it serves. One that did so earlier is found here. A later one waits for the end of this
      // transaction, or its start fails. Other restores wait, too: two that both found an empty database would mix their rows.
      await specifics.lockTables?.(transaction, ["instances"]);
      await refuseRunning(transaction, specifics);
      // Commands that are not instances, such as `svc admin-token`, wait as well.
      const written = CONTENT_TABLES.map(({ name }) => name);
      await specifics.lockTables?.(transaction, [...written, "one_time"]);
      for (const topic of ["repositories", "epochs"] as const) {
        await countChange(transaction, topic, specifics);
      }
      const found = await countRows(transaction, MIGRATION_NAMES);
      if (!content.replace) refuseContent(found);
      const revoked = await revokedTokens(transaction);
      const endedAdministration = await endedAdministrationTokens(transaction);
      const epochs = await nextEpochs(transaction, specifics, content);
      for (const { name } of CONTENT_TABLES.toReversed()) await transaction.deleteFrom(name).execute();
      await transaction.deleteFrom("one_time").execute();
      for await (const part of content.tables) {
        if (part.table !== "repository_epochs") await insertRows(transaction, part);
      }
      await insertRows(transaction, {
        table: "repository_epochs",
        rows: [...epochs].map(([key, epoch]) => ({ key, epoch })),
      });
      const valid = await countValidTokens(transaction, content.now);
      await revokeAgain(transaction, revoked);
      await endAgain(transaction, endedAdministration);
      const validTokens = await countValidTokens(transaction, content.now);
      return { deleted: found, revocations: valid - validTokens, validTokens };
    }),
  );
}

async function refuseRunning(db: Kysely<Tables>, specifics: SqlSpecifics): Promise<void> {
  // Only a restore needs it: a start does not load it.
  const { sqlInstances } = await import("./coordination/instances.ts");
  await refuseRunningInstances(sqlInstances(db, specifics));
}

async function countRows(db: Kysely<Tables>, applied: readonly string[]): Promise<Replaced["deleted"]> {
  const counts: Record<string, number> = {};
  for (const { name, since } of CONTENT_TABLES) {
    if (!applied.includes(since)) continue;
    const row = await db
      .selectFrom(name)
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .executeTakeFirstOrThrow();
    if (row.count > 0) counts[name] = row.count;
  }
  return counts;
}

/** Times by id. Ids are unique over all databases, so an id that the backup has too is the same token. */
async function revokedTokens(db: Kysely<Tables>): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom("tokens")
    .select(["id", "revoked_at"])
    .where("revoked_at", "is not", null)
    .execute();
  return new Map(rows.map((row) => [row.id, Number(row.revoked_at)]));
}

/** Revokes tokens that were revoked after the backup. */
async function revokeAgain(db: Kysely<Tables>, revoked: ReadonlyMap<string, number>): Promise<void> {
  const all = [...revoked];
  for (let start = 0; start < all.length; start += BATCH_ROWS) {
    const some = all.slice(start, start + BATCH_ROWS);
    const times = some.map(([id, at]) => sql`WHEN ${id} THEN CAST(${at} AS bigint)`);
    await db
      .updateTable("tokens")
      .set({ revoked_at: sql<number>`CASE id ${sql.join(times, sql` `)} END` })
      .where(
        "id",
        "in",
        some.map(([id]) => id),
      )
      .where("revoked_at", "is", null)
      .execute();
  }
}

/**
 * Ids of administration tokens that were revoked. Nothing but the audit remains of them. A token that is still there was not
 * revoked, although a request for it may have been.
 */
async function endedAdministrationTokens(db: Kysely<Tables>): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("audit")
    .select("target_key")
    .distinct()
    .where("action", "=", "admin_token.revoked")
    .where("outcome", "=", "allowed")
    .where("target_key", "is not", null)
    .where("target_key", "not in", (is) => is.selectFrom("sessions").select("id"))
    .execute();
  return rows.flatMap(({ target_key: id }) => id ?? []);
}

/** Ends administration tokens that were revoked after the backup. */
async function endAgain(db: Kysely<Tables>, ids: readonly string[]): Promise<void> {
  for (let start = 0; start < ids.length; start += BATCH_ROWS) {
    await db
      .deleteFrom("sessions")
      .where("kind", "=", "administration")
      .where("id", "in", ids.slice(start, start + BATCH_ROWS))
      .execute();
  }
}

/** Epochs only grow, those of the database and those of the backup. */
async function nextEpochs(
  db: Kysely<Tables>,
  { now }: SqlSpecifics,
  { epochs, raiseEpochs }: NewContent,
): Promise<ReadonlyMap<string, number>> {
  const stored = await db.selectFrom("repository_epochs").selectAll().execute();
  const present = new Map(stored.map(({ key, epoch }) => [key, epoch]));
  const { time } = await db.selectNoFrom(now.as("time")).executeTakeFirstOrThrow();
  return higherEpochs(present, epochs, raiseEpochs ? time : undefined);
}
