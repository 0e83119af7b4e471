import { sql, type Kysely, type RawBuilder } from "kysely";
import type { EpochStore } from "../../coordination-store.ts";
import { counted } from "./changes.ts";
import { nextNumber } from "./growing-number.ts";
import type { SqlSpecifics } from "../specifics.ts";
import type { Tables } from "../../rows/tables.ts";

export function sqlEpochs(db: Kysely<Tables>, specifics: SqlSpecifics): EpochStore {
  const { now } = specifics;
  const stored = async (key: string): Promise<number> => {
    const row = await db
      .selectFrom("repository_epochs")
      .select("epoch")
      .where("key", "=", key)
      .executeTakeFirst();
    return row?.epoch ?? 0;
  };
  /** @param next epoch that replaces a stored one @returns false: the stored one is not replaced */
  const put = async (key: string, first: RawBuilder<number>, next: RawBuilder<number>) =>
    counted(db, "epochs", specifics, async (transaction) => {
      const row = await transaction
        .insertInto("repository_epochs")
        .values({ key, epoch: first })
        .onConflict((conflict) =>
          conflict
            .column("key")
            .doUpdateSet({ epoch: next })
            .where(sql.ref("repository_epochs.epoch"), "<", next),
        )
        .returning("epoch")
        .executeTakeFirst();
      return row?.epoch ?? false;
    });
  return {
    get: stored,

    async raise(key) {
      const next = nextNumber("repository_epochs.epoch", now);
      return (await put(key, now, next)) || stored(key);
    },

    async adopt(key, atLeast) {
      if (atLeast <= 0) return stored(key);
      const value = sql<number>`CAST(${atLeast} AS bigint)`;
      return (await put(key, value, value)) || stored(key);
    },

    async all() {
      const rows = await db.selectFrom("repository_epochs").selectAll().execute();
      return new Map(rows.map(({ key, epoch }) => [key, epoch]));
    },
  };
}
