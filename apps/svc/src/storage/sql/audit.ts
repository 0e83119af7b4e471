import type { AuditPage, AuditQuery, AuditRecord, AuditStore } from "../../audit/audit-store.ts";
import type { Kysely, Selectable } from "kysely";
import type { AuditAction, AuditActor, AuditEvent, AuditOutcome } from "../../audit/audit-event.ts";
import { cursorOf, positionOf } from "../time-cursor.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

/** Rows of one insert: 13 values each, and SQLite takes 32,766 of them in a statement (sqlite.org/limits.html). */
const ROWS_PER_INSERT = 500;
/** Rows of one delete, so that others do not wait long for the write lock. */
const ROWS_PER_DELETE = 5000;

export class SqlAudit implements AuditStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async append(records: readonly AuditRecord[]): Promise<void> {
    if (records.length === 0) return;
    await asked(async () =>
      this.#db.transaction().execute(async (transaction) => {
        for (let start = 0; start < records.length; start += ROWS_PER_INSERT) {
          const rows = records.slice(start, start + ROWS_PER_INSERT).map(toRow);
          await transaction
            .insertInto("audit")
            .values(rows)
            .onConflict((conflict) => conflict.column("id").doNothing())
            .execute();
        }
      }),
    );
  }

  async query(query: AuditQuery): Promise<AuditPage> {
    const after = query.cursor === undefined ? undefined : positionOf(query.cursor);
    if (query.cursor !== undefined && after === undefined) return { records: [], next: undefined };
    return asked(async () => {
      let select = this.#db.selectFrom("audit").selectAll();
      if (query.actions !== undefined && query.actions.length > 0) {
        select = select.where("action", "in", query.actions);
      }
      if (query.actor !== undefined) select = select.where("actor_key", "=", query.actor.toLowerCase());
      if (query.target !== undefined) select = select.where("target_key", "=", query.target.toLowerCase());
      if (query.outcome !== undefined) select = select.where("outcome", "=", query.outcome);
      if (query.from !== undefined) select = select.where("at", ">=", query.from);
      if (query.to !== undefined) select = select.where("at", "<", query.to);
      if (after !== undefined) {
        const { at, id } = after;
        select = select.where((is) =>
          is.or([is("at", "<", at), is.and([is("at", "=", at), is("id", "<", id)])]),
        );
      }
      // One more than asked for tells whether there is a next page.
      const rows = await select
        .orderBy("at", "desc")
        .orderBy("id", "desc")
        .limit(query.limit + 1)
        .execute();
      const records = rows.slice(0, query.limit).map(fromRow);
      const last = records.at(-1);
      return { records, next: rows.length > query.limit && last !== undefined ? cursorOf(last) : undefined };
    });
  }

  async deleteBefore(time: number): Promise<number> {
    return asked(async () => {
      let deleted = 0;
      for (;;) {
        const { numDeletedRows } = await this.#db
          .deleteFrom("audit")
          .where("id", "in", (inner) =>
            inner.selectFrom("audit").select("id").where("at", "<", time).limit(ROWS_PER_DELETE),
          )
          .executeTakeFirst();
        deleted += Number(numDeletedRows);
        if (numDeletedRows < BigInt(ROWS_PER_DELETE)) return deleted;
      }
    });
  }
}

function toRow(record: AuditRecord): Tables["audit"] {
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

function fromRow(row: Selectable<Tables["audit"]>): AuditRecord {
  return {
    id: row.id,
    at: row.at,
    action: row.action as AuditAction,
    outcome: row.outcome as AuditOutcome,
    actor: {
      kind: row.actor_kind as AuditActor["kind"],
      login: row.actor_login ?? undefined,
      credentialId: row.credential_id ?? undefined,
    },
    target: row.target ?? undefined,
    remoteAddress: row.remote_address ?? undefined,
    requestId: row.request_id ?? undefined,
    details: row.details === null ? undefined : (JSON.parse(row.details) as AuditEvent["details"]),
  };
}
