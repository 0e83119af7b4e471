import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { Secret } from "@devplat/base";
import { startPostgres, until, type Postgres } from "@devplat/testkit";
import { sql, type Kysely } from "kysely";
import type { NewContent, TableRows } from "../database-content.ts";
import { replaceContent } from "../sql/content.ts";
import { migrate } from "../sql/migrations.ts";
import type { Tables } from "../rows/tables.ts";
import { openPostgres } from "./open.ts";
import { postgresSpecifics } from "./specifics.ts";

let postgres: Postgres;
before(async () => (postgres = await startPostgres()));
after(async () => postgres?.stop());

const contentOf = (tables: AsyncIterable<TableRows>): NewContent => ({
  tables,
  epochs: new Map(),
  raiseEpochs: false,
  replace: false,
  now: 1,
});

async function* oneUser(id: string, ready: Promise<void>): AsyncGenerator<TableRows> {
  await ready;
  yield { table: "users", rows: [{ id, login: id, login_key: id, created_at: 1 }] };
}

it("two restores at the same time do not mix their rows: the second is refused", async () => {
  const dsn = new Secret(await postgres.createDatabase());
  const open = async (): Promise<Kysely<Tables>> => openPostgres({ dsn, maxConnections: 1 });
  const [first, second, watcher] = await Promise.all([open(), open(), open()]);
  await migrate(watcher);
  const specifics = postgresSpecifics(dsn);
  const go = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  async function* held(): AsyncGenerator<TableRows> {
    begun.resolve();
    yield* oneUser("ada", go.promise);
  }
  const one = replaceContent(first, specifics, contentOf(held()));
  await begun.promise;
  let isOver = false;
  const two = replaceContent(second, specifics, contentOf(oneUser("bob", Promise.resolve())));
  const refused = assert.rejects(two, { code: "database_not_empty" }).finally(() => (isOver = true));
  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'`.execute(
      watcher,
    );
    return rows.length > 0 || isOver;
  };
  await until(isWaiting);
  go.resolve();
  await Promise.all([one, refused]);
  const users = await watcher.selectFrom("users").select("id").execute();
  assert.deepEqual(users, [{ id: "ada" }]);
  for (const db of [first, second, watcher]) await db.destroy();
});
