import { systemCode, type Secret } from "@devplat/base";
import { sql } from "kysely";
import type { SqlSpecifics } from "../sql/specifics.ts";
import { CHANGES_CHANNEL, listenToPostgres } from "./listener.ts";

export function postgresSpecifics(dsn: Secret): SqlSpecifics {
  return {
    isUniqueViolation,
    // Not now(), which is the time when the transaction began.
    now: sql<number>`CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`,
    async lockTables(transaction, names) {
      const tables = names.map((name) => sql.table(name));
      await sql`LOCK TABLE ${sql.join(tables)} IN EXCLUSIVE MODE`.execute(transaction);
    },
    async notify(db, topic) {
      await sql`SELECT pg_notify(${CHANGES_CHANNEL}, ${topic})`.execute(db);
    },
    listen: async (onChange, signal) => listenToPostgres(dsn, onChange, signal),
  };
}

/** unique_violation (postgresql.org/docs/current/errcodes-appendix.html). */
function isUniqueViolation(error: unknown): boolean {
  return systemCode(error) === "23505";
}
