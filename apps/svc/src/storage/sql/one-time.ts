import { Secret } from "@devplat/base";
import type { Kysely } from "kysely";
import type { SecretBox } from "../secret-box.ts";
import type { OneTimeRecord, OneTimeStore } from "../store.ts";
import { rowReader, type Tables } from "../rows/tables.ts";

const readRow = rowReader<OneTimeRecord>();

export function sqlOneTime(db: Kysely<Tables>, box: SecretBox): OneTimeStore {
  const seal = (kind: string, key: string, value: string): string =>
    box.seal(new Secret(value), oneTimePlace(kind, key));
  const recordOf = (row: Tables["one_time"]): OneTimeRecord => ({
    ...readRow(row),
    value: box.open(row.value, oneTimePlace(row.kind, row.key)).reveal(),
  });
  const find = async (kind: string, key: string, now: number): Promise<Tables["one_time"] | undefined> =>
    db
      .selectFrom("one_time")
      .selectAll()
      .where("kind", "=", kind)
      .where("key", "=", key)
      .where("expires_at", ">", now)
      .executeTakeFirst();
  return {
    async put({ kind, key, value, expiresAt }, now) {
      const entry = { value: seal(kind, key, value), expires_at: expiresAt };
      const { numInsertedOrUpdatedRows } = await db
        .insertInto("one_time")
        .values({ kind, key, ...entry })
        .onConflict((conflict) =>
          conflict.columns(["kind", "key"]).doUpdateSet(entry).where("one_time.expires_at", "<=", now),
        )
        .executeTakeFirst();
      return numInsertedOrUpdatedRows === 1n;
    },

    async get(kind, key, now) {
      const row = await find(kind, key, now);
      return row && recordOf(row);
    },

    async replace(kind, key, from, to, now) {
      // A sealed text differs each time. So the value is compared here, and the row by its sealed text.
      const row = await find(kind, key, now);
      if (row === undefined || recordOf(row).value !== from) return false;
      const { numUpdatedRows } = await db
        .updateTable("one_time")
        .set({ value: seal(kind, key, to) })
        .where("kind", "=", kind)
        .where("key", "=", key)
        .where("value", "=", row.value)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    async take(kind, key, now) {
      const row = await db
        .deleteFrom("one_time")
        .where("kind", "=", kind)
        .where("key", "=", key)
        .where("expires_at", ">", now)
        .returningAll()
        .executeTakeFirst();
      return row && recordOf(row);
    },

    async deleteExpired(now) {
      const query = db.deleteFrom("one_time").where("expires_at", "<=", now);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };
}

/** Record that the value of an entry is sealed for. */
export function oneTimePlace(kind: string, key: string): string {
  return `one_time/${kind}/${key}`;
}
