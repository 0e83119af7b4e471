import type { Kysely } from "kysely";
import type { TokenRecord, TokenStore } from "../store.ts";
import { pageOf, positionOf } from "../list-order.ts";
import { tokenOf } from "../rows/records.ts";
import { toRow, type Tables } from "../rows/tables.ts";
import { isValidAt } from "./valid-tokens.ts";

export function sqlTokens(db: Kysely<Tables>): TokenStore {
  const first = async (column: "id" | "token_hash", value: string): Promise<TokenRecord | undefined> => {
    const row = await db.selectFrom("tokens").selectAll().where(column, "=", value).executeTakeFirst();
    return row && tokenOf(row);
  };
  return {
    async insert(record) {
      await db.insertInto("tokens").values(toRow(record)).execute();
    },

    findByHash: async (tokenHash) => first("token_hash", tokenHash),
    get: async (id) => first("id", id),

    async list({ userId, mintedBy, cursor, limit }) {
      const after = cursor === undefined ? undefined : positionOf(cursor);
      if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
      let query = db.selectFrom("tokens").selectAll().where("revoked_at", "is", null);
      if (userId !== undefined) query = query.where("user_id", "=", userId);
      if (mintedBy !== undefined) query = query.where("minted_by", "=", mintedBy);
      if (after !== undefined) {
        const { at, id } = after;
        query = query.where((is) =>
          is.or([is("created_at", "<", at), is.and([is("created_at", "=", at), is("id", "<", id)])]),
        );
      }
      // One row more than the limit shows that there is a next page.
      const rows = await query
        .orderBy("created_at", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      return pageOf(rows.map(tokenOf), limit, ({ createdAt, id }) => ({ at: createdAt, id }));
    },

    async countMintedBy(sessionIds, now) {
      if (sessionIds.length === 0) return new Map();
      const rows = await db
        .selectFrom("tokens")
        .select(["minted_by", ({ fn }) => fn.countAll().as("count")])
        .where("minted_by", "in", sessionIds)
        .where(isValidAt(now))
        .groupBy("minted_by")
        .execute();
      return new Map(rows.map(({ minted_by: id, count }) => [id ?? "", Number(count)]));
    },

    async revoke(id, now) {
      const { numUpdatedRows } = await db
        .updateTable("tokens")
        .set({ revoked_at: now })
        .where("id", "=", id)
        .where("revoked_at", "is", null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },

    async recordUses(uses) {
      if (uses.length === 0) return;
      // All instances use the same order, so that two of them never wait for each other's rows.
      const ordered = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
      await db.transaction().execute(async (transaction) => {
        for (const { id, uses: count, lastUsedAt, lastIp } of ordered) {
          await transaction
            .updateTable("tokens")
            .set(({ eb }) => ({
              use_count: eb("use_count", "+", count),
              last_used_at: lastUsedAt,
              last_ip: lastIp,
            }))
            .where("id", "=", id)
            .execute();
        }
      });
    },

    async deleteEnded(before) {
      const query = db
        .deleteFrom("tokens")
        .where(({ eb }) => eb.or([eb("expires_at", "<", before), eb("revoked_at", "<", before)]));
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };
}
