import type { Kysely } from "kysely";
import type { AuditRecord, AuditStore } from "../../audit/audit-store.ts";
import { pageOf, positionOf } from "../time-cursor.ts";
import { rowReader, type Tables } from "./tables.ts";

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

export function auditRow(record: AuditRecord): Tables["audit"] {
  const { actor, target } = record;
  return {
    id: record.id,
    at: record.at,
    action: record.action,
    outcome: record.outcome,
    actor_kind: actor.kind,
    actor_login: actor.login ?? null,
    actor_key: actor.login?.toLowerCase() ?? null,
    credential_id: actor.credentialId ?? null,
    target: target ?? null,
    target_key: target?.toLowerCase() ?? null,
    remote_address: record.remoteAddress ?? null,
    request_id: record.requestId ?? null,
    details: record.details === undefined ? null : JSON.stringify(record.details),
  };
}

const readRow = rowReader<Required<Omit<AuditRecord, "actor">>>({ json: ["details"] });

export function auditRecordOf(row: Tables["audit"]): AuditRecord {
  const { actor_kind: kind, actor_login: login, credential_id: credentialId, ...others } = row;
  const { actor_key: _actor, target_key: _target, ...columns } = others;
  return {
    ...readRow(columns),
    actor: { kind, login: login ?? undefined, credentialId: credentialId ?? undefined },
  };
}
