import { sql, type Kysely } from "kysely";
import type { InstanceStore } from "../../coordination-store.ts";
import { byHostName } from "../../list-order.ts";
import type { SqlSpecifics } from "../specifics.ts";
import type { Tables } from "../../rows/tables.ts";

export function sqlInstances(db: Kysely<Tables>, { now }: SqlSpecifics): InstanceStore {
  const report: InstanceStore["report"] = async (record) => {
    const change = {
      host_name: record.hostName,
      address: record.address ?? null,
      version: record.version,
      manifest_key_id: record.manifestKeyId ?? null,
      settings_digests: record.settingsDigests ?? null,
      ready: record.ready ? 1 : 0,
      reported_at: now,
    };
    await db
      .insertInto("instances")
      .values({ id: record.id, ...change, started_at: now, figures: null, figures_at: null })
      .onConflict((conflict) => conflict.column("id").doUpdateSet(change))
      .execute();
  };
  return {
    // It waits for a restore, which locks the table.
    async register(record) {
      await report(record);
      return true;
    },

    report,

    async putFigures(id, figures) {
      await db.updateTable("instances").set({ figures, figures_at: now }).where("id", "=", id).execute();
    },

    async list() {
      const rows = await db.selectFrom("instances").selectAll().select(now.as("now")).execute();
      return rows
        .map((row) => ({
          id: row.id,
          hostName: row.host_name,
          address: row.address ?? undefined,
          version: row.version,
          manifestKeyId: row.manifest_key_id ?? undefined,
          settingsDigests: row.settings_digests ?? undefined,
          ready: row.ready !== 0,
          uptimeMs: row.now - row.started_at,
          reportAgeMs: row.now - row.reported_at,
          figures: row.figures ?? undefined,
          figuresAgeMs: row.figures_at === null ? undefined : row.now - row.figures_at,
        }))
        .toSorted(byHostName);
    },

    async remove(id) {
      await db.deleteFrom("instances").where("id", "=", id).execute();
    },

    async removeSilent(olderThanMs) {
      const query = db
        .deleteFrom("instances")
        .where("reported_at", "<", sql<number>`${now} - CAST(${olderThanMs} AS bigint)`);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };
}
