import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { it } from "node:test";
import { tempFolder } from "@devplat/testkit";
import { openSqlite } from "../sqlite/open.ts";
import { withDatabaseErrors } from "./database-errors.ts";

const coded = (fields: object) => Object.assign(new Error("secret detail"), fields);

for (const { name, error, message, remedy = "final" } of [
  { name: "missing rights in Postgres", error: { code: "42501" }, message: /: permission denied$/ },
  { name: "a read-only file of SQLite", error: { errcode: 8 }, message: /permission denied: the file is/ },
  { name: "a damaged file of SQLite", error: { errcode: 11 }, message: /: the database is damaged$/ },
  { name: "a lock", error: { errcode: 5 }, message: /locked by another command/, remedy: "retry" },
  { name: "another reason", error: { code: "08006" }, message: /did not answer a query$/, remedy: "retry" },
]) {
  it(`the error of a query names ${name}`, async () => {
    const failed = withDatabaseErrors(() => Promise.reject(coded(error)));
    await assert.rejects(failed, { code: "database_unavailable", message, remedy });
  });
}

it("a file that is not a database is named as damaged, with the next step", async () => {
  const folder = await tempFolder("damaged");
  const path = join(folder.path, "svc.db");
  await writeFile(path, "x".repeat(8192));
  await assert.rejects(openSqlite(path), { message: /the database is damaged$/, hint: /svc restore FILE/ });
  await folder.remove();
});
