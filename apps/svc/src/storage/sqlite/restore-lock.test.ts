import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import { Secret } from "@devplat/base";
import { tempFolder } from "@devplat/testkit";
import { filledDatabase } from "../../backup/backup.test-kit.ts";
import type { TableRows } from "../database-content.ts";
import { SecretBox } from "../secret-box.ts";
import { replaceContent } from "../sql/content.ts";
import { sqlStore } from "../sql/sql-store.ts";
import { openSqlite, sqliteSpecifics } from "./open.ts";

it("an instance that starts while a restore writes is refused with a reason", async () => {
  const folder = await tempFolder("restore-lock");
  const path = join(folder.path, "svc.db");
  const restorer = await filledDatabase(path);
  const db = await openSqlite(path);
  const store = sqlStore({
    db,
    box: new SecretBox(new Secret("0f".repeat(32))),
    specifics: sqliteSpecifics,
  });
  const begun = Promise.withResolvers<void>();
  const go = Promise.withResolvers<void>();
  async function* held(): AsyncGenerator<TableRows> {
    begun.resolve();
    await go.promise;
    yield { table: "users", rows: [] };
  }
  const content = { tables: held(), epochs: new Map(), raiseEpochs: false, replace: true, now: 1 };
  const restore = replaceContent(restorer, sqliteSpecifics, content);
  await begun.promise;
  const record = { id: "late", hostName: "box", version: "1", ready: false };
  const rest = { address: undefined, manifestKeyId: undefined, settingsDigests: undefined };
  await assert.rejects(store.instances.register({ ...record, ...rest }), {
    code: "database_unavailable",
    message: /locked by another command, such as 'svc restore'/,
  });
  go.resolve();
  await restore;
  assert.equal(await store.instances.register({ ...record, ...rest }), true);
  assert.deepEqual(await store.sessions.list(), []);
  for (const each of [restorer, db]) await each.destroy();
  await folder.remove();
});
