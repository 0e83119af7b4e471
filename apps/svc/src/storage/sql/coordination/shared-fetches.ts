import { sql, type Kysely, type Selectable } from "kysely";
import type { SharedFetchRecord, SharedFetchStore } from "../../coordination-store.ts";
import { nextNumber } from "./growing-number.ts";
import type { SqlSpecifics } from "../specifics.ts";
import type { Tables } from "../../rows/tables.ts";

export function sqlSharedFetches(db: Kysely<Tables>, { now }: SqlSpecifics): SharedFetchStore {
  const after = (ms: number) => sql<number>`${now} + CAST(${ms} AS bigint)`;
  const find = async (key: string): Promise<SharedFetchRecord | undefined> => {
    const row = await db
      .selectFrom("shared_fetches")
      .selectAll()
      .select(now.as("now"))
      .where("key", "=", key)
      .executeTakeFirst();
    return row && recordOf(row);
  };
  /** The record of a fetch that has not ended, if it is that fetch. */
  const running = (key: string, fence: number) =>
    db
      .updateTable("shared_fetches")
      .where("key", "=", key)
      .where("fence", "=", fence)
      .where("state", "in", ["fetching", "uploading"]);
  return {
    async begin(key, holder, ttlMs, insteadOf) {
      for (;;) {
        const row = await db
          .insertInto("shared_fetches")
          .values({ key, fence: now, ...begun(holder, ttlMs) })
          .onConflict((conflict) =>
            conflict
              .column("key")
              .doUpdateSet({ fence: nextNumber("shared_fetches.fence", now), ...begun(holder, ttlMs) })
              .where(({ eb }) =>
                eb.or([
                  eb("shared_fetches.expires_at", "<=", now),
                  ...(insteadOf === undefined
                    ? []
                    : [
                        eb.and([
                          eb("shared_fetches.state", "=", "shared"),
                          eb("shared_fetches.fence", "=", insteadOf),
                        ]),
                      ]),
                ]),
              ),
          )
          .returning("fence")
          .executeTakeFirst();
        if (row !== undefined) return { kind: "begun", fence: row.fence };
        const fetch = await find(key);
        if (fetch !== undefined && fetch.remainingMs > 0) return { kind: "other", fetch };
      }
    },

    async progress(key, fence, { state, bytes, expectedBytes }, ttlMs) {
      const row = await running(key, fence)
        .set({ state, bytes, expected_bytes: expectedBytes ?? null, expires_at: after(ttlMs) })
        .returning("is_awaited")
        .executeTakeFirst();
      return row && { isAwaited: row.is_awaited !== 0 };
    },

    async end(key, fence, state, keepMs) {
      await running(key, fence)
        .set({ state, expires_at: after(keepMs) })
        .execute();
    },

    find,

    async markAwaited(key, fence) {
      await running(key, fence).set({ is_awaited: 1 }).execute();
    },

    async deleteEnded(olderThanMs) {
      const query = db
        .deleteFrom("shared_fetches")
        .where("expires_at", "<=", sql<number>`${now} - CAST(${olderThanMs} AS bigint)`);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };

  function begun(holder: string, ttlMs: number) {
    return {
      holder,
      state: "fetching" as const,
      bytes: 0,
      expected_bytes: null,
      is_awaited: 0,
      started_at: now,
      expires_at: after(ttlMs),
    };
  }

  function recordOf(row: Selectable<Tables["shared_fetches"]> & { now: number }): SharedFetchRecord {
    return {
      key: row.key,
      holder: row.holder,
      fence: row.fence,
      state: row.state,
      bytes: row.bytes,
      expectedBytes: row.expected_bytes ?? undefined,
      elapsedMs: row.now - row.started_at,
      remainingMs: row.expires_at - row.now,
    };
  }
}
