import type { Kysely } from "kysely";
import type { AuditStore } from "../../audit/audit-store.ts";
import { pageOf, positionOf } from "../list-order.ts";
import { auditRecordOf, auditRow } from "../rows/records.ts";
import type { Tables } from "../rows/tables.ts";

/** Rows of one insert: 13 values each, and SQLite takes 32,766 of them in a statement (sqlite.org/limits.html). */
const ROWS_PER_INSERT = 500;
/** Rows of one delete, so that other statements do not wait long for the write lock. */
const ROWS_PER_DELETE = 5000;

export function sqlAudit(db: Kysely<Tables>): AuditStore {
  return {
    async append(records) {
      if (records.length === 0) return;
      await db.transaction().execute(async (transaction) => {
        for (let start = 0; start < records.length; start += ROWS_PER_INSERT) {
          const rows = records.slice(start, start + ROWS_PER_INSERT).map(auditRow);
          await transaction
            .insertInto("audit")
            .values(rows)
            .onConflict((conflict) => conflict.column("id").doNothing())
            .execute();
        }
      });
    },

    async query({ actions, actor, target, outcome, from, to, cursor, limit }) {
      const after = cursor === undefined ? undefined : positionOf(cursor);
      if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
      let select = db.selectFrom("audit").selectAll();
      if (actions !== undefined && actions.length > 0) select = select.where("action", "in", actions);
      if (actor !== undefined) select = select.where("actor_key", "=", actor.toLowerCase());
      if (target !== undefined) select = select.where("target_key", "=", target.toLowerCase());
      if (outcome !== undefined) select = select.where("outcome", "=", outcome);
      if (from !== undefined) select = select.where("at", ">=", from);
      if (to !== undefined) select = select.where("at", "<", to);
      if (after !== undefined) {
        const { at, id } = after;
        select = select.where((is) =>
          is.or([is("at", "<", at), is.and([is("at", "=", at), is("id", "<", id)])]),
        );
      }
      // One row more than the limit shows that there is a next page.
      const rows = await select
        .orderBy("at", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      return pageOf(rows.map(auditRecordOf), limit, (record) => record);
    },

    async deleteBefore(time) {
      let deleted = 0;
      for (;;) {
        const { numDeletedRows } = await db
          .deleteFrom("audit")
          .where("id", "in", (inner) =>
            inner.selectFrom("audit").select("id").where("at", "<", time).limit(ROWS_PER_DELETE),
          )
          .executeTakeFirst();
        deleted += Number(numDeletedRows);
        if (numDeletedRows < BigInt(ROWS_PER_DELETE)) return deleted;
      }
    },
  };
}
