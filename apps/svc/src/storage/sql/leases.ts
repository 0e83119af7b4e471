import type { Kysely } from "kysely";
import type { LeaseStore } from "../store.ts";
import type { Tables } from "./tables.ts";

export function sqlLeases(db: Kysely<Tables>): LeaseStore {
  return {
    async acquire(name, holder, ttlMs, now) {
      const lease = { holder, expires_at: now + ttlMs };
      const { numInsertedOrUpdatedRows } = await db
        .insertInto("leases")
        .values({ name, ...lease })
        .onConflict((conflict) =>
          conflict
            .column("name")
            .doUpdateSet(lease)
            .where(({ eb }) => eb.or([eb("leases.expires_at", "<=", now), eb("leases.holder", "=", holder)])),
        )
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    },

    async release(name, holder) {
      await db.deleteFrom("leases").where("name", "=", name).where("holder", "=", holder).execute();
    },
  };
}
