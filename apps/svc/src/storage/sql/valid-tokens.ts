import type { Expression, ExpressionBuilder, Kysely, SqlBool } from "kysely";
import type { Tables } from "../rows/tables.ts";

/** Condition for proxy and agent tokens that are neither revoked nor expired. */
export function isValidAt(now: number): (is: ExpressionBuilder<Tables, "tokens">) => Expression<SqlBool> {
  return (is) =>
    is.and([is("revoked_at", "is", null), is.or([is("expires_at", "is", null), is("expires_at", ">", now)])]);
}

/** Number of valid tokens, administration tokens included. */
export async function countValidTokens(db: Kysely<Tables>, now: number): Promise<number> {
  const tokens = await db
    .selectFrom("tokens")
    .select(({ fn }) => fn.countAll().as("count"))
    .where(isValidAt(now))
    .executeTakeFirstOrThrow();
  const administration = await db
    .selectFrom("sessions")
    .select(({ fn }) => fn.countAll().as("count"))
    .where("kind", "=", "administration")
    .where("expires_at", ">", now)
    .executeTakeFirstOrThrow();
  return Number(tokens.count) + Number(administration.count);
}
