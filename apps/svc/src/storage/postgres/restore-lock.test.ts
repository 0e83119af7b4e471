import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Secret } from "@devplat/base";
import { startPostgres, until, type Postgres } from "@devplat/testkit";
import { sql } from "kysely";
import { filledDatabase } from "../../backup/backup.test-kit.ts";
import type { TableRows } from "../database-content.ts";
import { SecretBox } from "../secret-box.ts";
import { replaceContent, tableRows } from "../sql/content.ts";
import { MIGRATION_NAMES, migrate } from "../sql/migrations.ts";
import { sqlStore } from "../sql/sql-store.ts";
import type { Store } from "../store.ts";
import { openPostgres } from "./open.ts";
import { postgresSpecifics } from "./specifics.ts";

const INSTANCE = {
  id: "late",
  hostName: "box",
  address: undefined,
  version: "1",
  manifestKeyId: undefined,
  settingsDigests: undefined,
  ready: false,
};

let postgres: Postgres;
before(async () => (postgres = await startPostgres()));
after(async () => postgres?.stop());

/** Runs a restore, and calls `during` when it has deleted the former rows. */
async function restoring(
  during: (store: Store, waiting: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const dsn = new Secret(await postgres.createDatabase());
  const open = async () => openPostgres({ dsn, maxConnections: 2 });
  const patient = openPostgres({ dsn, maxConnections: 2, forMigration: true });
  const [restorer, service, watcher] = await Promise.all([patient, open(), open()]);
  await migrate(watcher);
  const specifics = postgresSpecifics(dsn);
  const store = sqlStore({ db: service, box: new SecretBox(new Secret("0f".repeat(32))), specifics });
  const source = await filledDatabase();
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  async function* held(): AsyncGenerator<TableRows> {
    begun.resolve();
    await go.promise;
    yield* tableRows(source, MIGRATION_NAMES);
  }
  const content = { tables: held(), epochs: new Map(), raiseEpochs: false, replace: true, now: 1 };
  const restore = replaceContent(restorer, specifics, content);
  await begun.promise;
  const waiting = async (): Promise<void> => {
    const lock = sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
    await until(async () => (await lock.execute(watcher)).rows.length > 0);
    go.resolve();
    await restore;
  };
  try {
    await during(store, waiting);
  } finally {
    go.resolve();
    await restore;
    for (const db of [restorer, service, watcher, source]) await db.destroy();
  }
}

it("an instance that starts while a restore writes waits for its commit", async () => {
  await restoring(async (store, waiting) => {
    const registered = store.instances.register(INSTANCE);
    await waiting();
    assert.equal(await registered, true);
    assert.equal((await store.users.list()).length, 1, "it has the restored content");
  });
});

it("a restore that does not end refuses the start of an instance with a reason", async () => {
  await restoring(async (store) => {
    await assert.rejects(store.instances.register(INSTANCE), {
      code: "database_unavailable",
      message: /locked by another command, such as 'svc restore'/,
    });
  });
});

it("a command that writes while a restore writes waits for its commit", async () => {
  await restoring(async (store, waiting) => {
    const made = store.users.ensure("mallory", "u-new", 1);
    await waiting();
    await made;
    assert.equal((await store.sessions.list()).length, 2, "only those of the backup");
  });
});
