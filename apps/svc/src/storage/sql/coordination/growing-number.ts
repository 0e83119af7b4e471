import { sql, type RawBuilder } from "kysely";

/**
 * The next fencing number or epoch, as an expression of SQL: the time, or one more than the last one if that is later. So
 * it is higher than all earlier ones, also after a backup was restored or the row was deleted.
 *
 * @param column with the last one
 * @param now clock of the database
 */
export function nextNumber(column: string, now: RawBuilder<number>): RawBuilder<number> {
  const last = sql.ref<number>(column);
  return sql<number>`CASE WHEN ${last} < ${now} THEN ${now} ELSE ${last} + 1 END`;
}
