import { sql, type Kysely } from "kysely";
import type { LeaseStore } from "../../coordination-store.ts";
import { nextNumber } from "./growing-number.ts";
import type { SqlSpecifics } from "../specifics.ts";
import type { Tables } from "../../rows/tables.ts";

/** Holder of a lease that was released. Its row keeps the fencing number. */
const NOBODY = "";

export function sqlLeases(db: Kysely<Tables>, { now }: SqlSpecifics): LeaseStore {
  const end = (ttlMs: number) => sql<number>`${now} + CAST(${ttlMs} AS bigint)`;
  return {
    async acquire(name, holder, ttlMs) {
      const row = await db
        .insertInto("leases")
        .values({ name, holder, expires_at: end(ttlMs), fence: now })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet({ holder, expires_at: end(ttlMs), fence: nextFence(holder) })
            .where(({ eb }) => eb.or([eb("leases.expires_at", "<=", now), eb("leases.holder", "=", holder)])),
        )
        .returning("fence")
        .executeTakeFirst();
      return row && { name, holder, fence: row.fence };
    },

    async renew({ name, holder, fence }, ttlMs) {
      const { numUpdatedRows } = await db
        .updateTable("leases")
        .set({ expires_at: end(ttlMs) })
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("fence", "=", fence)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    async release({ name, holder, fence }) {
      await db
        .updateTable("leases")
        .set({ holder: NOBODY, expires_at: 0 })
        .where("name", "=", name)
        .where("holder", "=", holder)
        .where("fence", "=", fence)
        .execute();
    },

    async deleteEnded(olderThanMs) {
      const query = db
        .deleteFrom("leases")
        .where("expires_at", "<=", sql<number>`${now} - CAST(${olderThanMs} AS bigint)`)
        // A released lease has no end: the time of its acquisition counts. The next number must be higher.
        .where("fence", "<", sql<number>`${now} - CAST(${olderThanMs} AS bigint)`);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };

  function nextFence(holder: string) {
    const [current, last] = [sql.ref("leases.holder"), sql.ref<number>("leases.fence")];
    // Earlier versions of this program wrote no fencing number.
    const isSame = sql<boolean>`${current} = ${holder} AND ${last} > 0`;
    return sql<number>`CASE WHEN ${isSame} THEN ${last} ELSE ${nextNumber("leases.fence", now)} END`;
  }
}
