import assert from "node:assert/strict";
import { it } from "node:test";
import { RUNNING_MS, runningInstances } from "./running-instances.ts";
import { openSqlite, sqliteSpecifics } from "./sqlite/open.ts";
import { sqlInstances } from "./sql/coordination/instances.ts";
import { migrate } from "./sql/migrations.ts";

it("an instance counts as running until its last report is too old", async () => {
  const db = await openSqlite(":memory:");
  await migrate(db);
  const instances = sqlInstances(db, sqliteSpecifics);
  const instance = { hostName: "box", address: undefined, version: "1", ready: false };
  for (const [id, ageMs] of [
    ["new", 0],
    ["late", RUNNING_MS - 5000],
    ["killed", RUNNING_MS],
  ] as const) {
    await instances.report({ ...instance, id, manifestKeyId: undefined, settingsDigests: undefined });
    await db
      .updateTable("instances")
      .set({ reported_at: Date.now() - ageMs })
      .where("id", "=", id)
      .execute();
  }
  const running = await runningInstances(instances);
  assert.deepEqual(running.map(({ id }) => id).toSorted(), ["late", "new"]);
  await db.destroy();
});
