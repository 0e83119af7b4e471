import { once } from "node:events";
import type { Kysely } from "kysely";
import type { ChangeStore, ChangeTopic } from "../../coordination-store.ts";
import type { SqlSpecifics } from "../specifics.ts";
import type { Tables } from "../../rows/tables.ts";

export function sqlChanges(db: Kysely<Tables>, { listen }: SqlSpecifics): ChangeStore {
  return {
    async counts() {
      const rows = await db.selectFrom("changes").selectAll().execute();
      const found = Object.fromEntries(rows.map(({ topic, count }) => [topic, count]));
      return { repositories: 0, epochs: 0, ...found };
    },

    async listen(onChange, signal) {
      if (listen !== undefined) await listen(onChange, signal);
      else if (!signal.aborted) await once(signal, "abort");
    },
  };
}

/** Runs a change and counts it in the same transaction, unless it gives false. */
export async function counted<Result>(
  db: Kysely<Tables>,
  topic: ChangeTopic,
  specifics: SqlSpecifics,
  change: (db: Kysely<Tables>) => Promise<Result>,
): Promise<Result> {
  return db.transaction().execute(async (transaction) => {
    const result = await change(transaction);
    if (result === false) return result;
    await countChange(transaction, topic, specifics);
    return result;
  });
}

/** Counts a change in the transaction that makes it. */
export async function countChange(
  transaction: Kysely<Tables>,
  topic: ChangeTopic,
  { notify }: SqlSpecifics,
): Promise<void> {
  await transaction
    .insertInto("changes")
    .values({ topic, count: 1 })
    .onConflict((conflict) =>
      conflict.column("topic").doUpdateSet(({ eb }) => ({ count: eb("changes.count", "+", 1) })),
    )
    .execute();
  await notify?.(transaction, topic);
}
