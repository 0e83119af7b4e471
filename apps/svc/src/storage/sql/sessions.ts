import type { Kysely } from "kysely";
import type { SessionRecord, SessionStore } from "../store.ts";
import { sessionOf } from "../rows/records.ts";
import { toRow, type Tables } from "../rows/tables.ts";

export function sqlSessions(db: Kysely<Tables>): SessionStore {
  const first = async (column: "id" | "token_hash", value: string): Promise<SessionRecord | undefined> => {
    const row = await db.selectFrom("sessions").selectAll().where(column, "=", value).executeTakeFirst();
    return row && sessionOf(row);
  };
  return {
    async insert(record) {
      await db.insertInto("sessions").values(toRow(record)).execute();
    },

    findByHash: async (tokenHash) => first("token_hash", tokenHash),
    get: async (id) => first("id", id),

    async list({ userId, kind } = {}) {
      let query = db.selectFrom("sessions").selectAll();
      if (userId !== undefined) query = query.where("user_id", "=", userId);
      if (kind !== undefined) query = query.where("kind", "=", kind);
      const rows = await query.orderBy("created_at", "desc").orderBy("id", "desc").execute();
      return rows.map(sessionOf);
    },

    async recordSeen(id, at) {
      await db.updateTable("sessions").set({ last_seen_at: at }).where("id", "=", id).execute();
    },

    async delete(id) {
      const { numDeletedRows } = await db.deleteFrom("sessions").where("id", "=", id).executeTakeFirst();
      return numDeletedRows === 1n;
    },

    async deleteOfUser(userId, kind) {
      let query = db.deleteFrom("sessions").where("user_id", "=", userId);
      if (kind !== undefined) query = query.where("kind", "=", kind);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },

    async deleteExpired(before) {
      const query = db.deleteFrom("sessions").where("expires_at", "<", before);
      return Number((await query.executeTakeFirst()).numDeletedRows);
    },
  };
}
