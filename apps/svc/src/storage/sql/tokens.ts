import type { Kysely, Selectable } from "kysely";
import type { Level, TokenPage, TokenQuery, TokenRecord, TokenStore, TokenUse } from "../store.ts";
import { cursorOf, positionOf } from "../time-cursor.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlTokens implements TokenStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async insert(record: TokenRecord): Promise<void> {
    await asked(async () => {
      await this.#db.insertInto("tokens").values(toRow(record)).execute();
    });
  }

  async findByHash(tokenHash: string): Promise<TokenRecord | undefined> {
    return this.#first("token_hash", tokenHash);
  }

  async get(id: string): Promise<TokenRecord | undefined> {
    return this.#first("id", id);
  }

  async list({ userId, mintedBy, cursor, limit }: TokenQuery): Promise<TokenPage> {
    const after = cursor === undefined ? undefined : positionOf(cursor);
    if (cursor !== undefined && after === undefined) return { records: [], next: undefined };
    return asked(async () => {
      let query = this.#db.selectFrom("tokens").selectAll().where("revoked_at", "is", null);
      if (userId !== undefined) query = query.where("user_id", "=", userId);
      if (mintedBy !== undefined) query = query.where("minted_by", "=", mintedBy);
      if (after !== undefined) {
        const { at, id } = after;
        query = query.where((is) =>
          is.or([is("created_at", "<", at), is.and([is("created_at", "=", at), is("id", "<", id)])]),
        );
      }
      // One more than asked for tells whether there is a next page.
      const rows = await query
        .orderBy("created_at", "desc")
        .orderBy("id", "desc")
        .limit(limit + 1)
        .execute();
      const records = rows.slice(0, limit).map(fromRow);
      const last = records.at(-1);
      const more = rows.length > limit && last !== undefined;
      return { records, next: more ? cursorOf({ at: last.createdAt, id: last.id }) : undefined };
    });
  }

  async countMintedBy(sessionIds: readonly string[], now: number): Promise<ReadonlyMap<string, number>> {
    if (sessionIds.length === 0) return new Map();
    return asked(async () => {
      const rows = await this.#db
        .selectFrom("tokens")
        .select(["minted_by", ({ fn }) => fn.countAll().as("count")])
        .where("minted_by", "in", sessionIds)
        .where("revoked_at", "is", null)
        .where(({ eb }) => eb.or([eb("expires_at", "is", null), eb("expires_at", ">", now)]))
        .groupBy("minted_by")
        .execute();
      return new Map(rows.map(({ minted_by: id, count }) => [id ?? "", Number(count)]));
    });
  }

  async revoke(id: string, now: number): Promise<boolean> {
    return asked(async () => {
      const { numUpdatedRows } = await this.#db
        .updateTable("tokens")
        .set({ revoked_at: now })
        .where("id", "=", id)
        .where("revoked_at", "is", null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    });
  }

  async recordUses(uses: readonly TokenUse[]): Promise<void> {
    if (uses.length === 0) return;
    // In one order everywhere, so that two instances never wait for each other's rows.
    const ordered = uses.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    await asked(async () =>
      this.#db.transaction().execute(async (transaction) => {
        for (const use of ordered) {
          await transaction
            .updateTable("tokens")
            .set(({ eb }) => ({
              use_count: eb("use_count", "+", use.uses),
              last_used_at: use.lastUsedAt,
              last_ip: use.lastIp,
            }))
            .where("id", "=", use.id)
            .execute();
        }
      }),
    );
  }

  async deleteEnded(before: number): Promise<number> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db
        .deleteFrom("tokens")
        .where(({ eb }) => eb.or([eb("expires_at", "<", before), eb("revoked_at", "<", before)]))
        .executeTakeFirst();
      return Number(numDeletedRows);
    });
  }

  async #first(column: "id" | "token_hash", value: string): Promise<TokenRecord | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("tokens")
        .selectAll()
        .where(column, "=", value)
        .executeTakeFirst();
      return row === undefined ? undefined : fromRow(row);
    });
  }
}

function toRow(record: TokenRecord): Tables["tokens"] {
  return {
    id: record.id,
    type: record.type,
    token_hash: record.tokenHash,
    token_start: record.tokenStart,
    user_id: record.userId,
    repositories: JSON.stringify(record.repositories),
    scopes: JSON.stringify(record.scopes),
    description: record.description ?? null,
    session_id: record.sessionId ?? null,
    ip_allow: JSON.stringify(record.ipAllow),
    created_at: record.createdAt,
    expires_at: record.expiresAt ?? null,
    revoked_at: record.revokedAt ?? null,
    last_used_at: record.lastUsedAt ?? null,
    last_ip: record.lastIp ?? null,
    use_count: record.useCount,
    app_id: record.appId ?? null,
    installation: record.installation ?? null,
    requests_per_minute: record.requestsPerMinute ?? null,
    minted_by: record.mintedBy ?? null,
  };
}

function fromRow(row: Selectable<Tables["tokens"]>): TokenRecord {
  return {
    id: row.id,
    type: row.type === "agent" ? "agent" : "proxy",
    tokenHash: row.token_hash,
    tokenStart: row.token_start,
    userId: row.user_id,
    repositories: JSON.parse(row.repositories) as string[],
    scopes: JSON.parse(row.scopes) as Record<string, Level>,
    description: row.description ?? undefined,
    sessionId: row.session_id ?? undefined,
    appId: row.app_id ?? undefined,
    installation: row.installation ?? undefined,
    ipAllow: JSON.parse(row.ip_allow) as string[],
    requestsPerMinute: row.requests_per_minute ?? undefined,
    mintedBy: row.minted_by ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    lastIp: row.last_ip ?? undefined,
    useCount: row.use_count,
  };
}
