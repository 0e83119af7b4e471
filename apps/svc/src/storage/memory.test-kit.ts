import { Secret } from "@devplat/base";
import { SecretBox } from "./secret-box.ts";
import { migrate } from "./sql/migrations.ts";
import { SqlStore } from "./sql/sql-store.ts";
import { isUniqueViolation, openSqlite } from "./sqlite/open.ts";

/** The real store on a database in memory, for tests of what stands on it. */
export async function memoryStore(): Promise<SqlStore> {
  const db = await openSqlite(":memory:");
  await migrate(db);
  return new SqlStore({ db, box: new SecretBox(new Secret("0f".repeat(32))), isUniqueViolation });
}
