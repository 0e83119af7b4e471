import type { Kysely } from "kysely";
import type { ManifestPointerStore } from "../../coordination-store.ts";
import type { Tables } from "../../rows/tables.ts";

export function sqlManifestPointers(db: Kysely<Tables>): ManifestPointerStore {
  return {
    async get(key) {
      const row = await db
        .selectFrom("manifest_pointers")
        .select(["name", "generation", "fence"])
        .where("key", "=", key)
        .executeTakeFirst();
      return row && { ...row };
    },

    async replace(key, { name, generation, fence }, expected) {
      const next = { name, generation, fence };
      if (expected === undefined) {
        const { numInsertedOrUpdatedRows } = await db
          .insertInto("manifest_pointers")
          .values({ key, ...next })
          .onConflict((conflict) => conflict.column("key").doNothing())
          .executeTakeFirst();
        return numInsertedOrUpdatedRows === 1n;
      }
      const { numUpdatedRows } = await db
        .updateTable("manifest_pointers")
        .set(next)
        .where("key", "=", key)
        .where("generation", "=", expected)
        .where("fence", "<=", fence)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },
  };
}
