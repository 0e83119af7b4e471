import { Secret } from "@devplat/base";
import { SecretBox } from "./secret-box.ts";
import { migrate } from "./sql/migrations.ts";
import { sqlStore } from "./sql/sql-store.ts";
import type { Store } from "./store.ts";
import { openSqlite, sqliteSpecifics } from "./sqlite/open.ts";

/** The real store on a database in memory, for tests of the parts above it. */
export async function memoryStore(): Promise<Store> {
  const db = await openSqlite(":memory:");
  await migrate(db);
  return sqlStore({ db, box: new SecretBox(new Secret("0f".repeat(32))), specifics: sqliteSpecifics });
}
