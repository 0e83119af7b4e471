import type { Kysely } from "kysely";
import type { SessionRecord, SessionStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlSessions implements SessionStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  async insert(record: SessionRecord): Promise<void> {
    await asked(async () => {
      await this.#db
        .insertInto("sessions")
        .values({
          id: record.id,
          kind: record.kind,
          token_hash: record.tokenHash,
          token_start: record.tokenStart,
          user_id: record.userId,
          role: record.role,
          created_at: record.createdAt,
          expires_at: record.expiresAt,
        })
        .execute();
    });
  }

  async findByHash(tokenHash: string): Promise<SessionRecord | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("sessions")
        .selectAll()
        .where("token_hash", "=", tokenHash)
        .executeTakeFirst();
      if (row === undefined) return undefined;
      return {
        id: row.id,
        kind: row.kind === "administration" ? "administration" : "session",
        tokenHash: row.token_hash,
        tokenStart: row.token_start,
        userId: row.user_id,
        // Anything but the exact word is the lesser role.
        role: row.role === "admin" ? "admin" : "user",
        createdAt: row.created_at,
        expiresAt: row.expires_at,
      };
    });
  }

  async delete(id: string): Promise<boolean> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db
        .deleteFrom("sessions")
        .where("id", "=", id)
        .executeTakeFirst();
      return numDeletedRows === 1n;
    });
  }

  async deleteExpired(before: number): Promise<number> {
    return asked(async () => {
      const { numDeletedRows } = await this.#db
        .deleteFrom("sessions")
        .where("expires_at", "<", before)
        .executeTakeFirst();
      return Number(numDeletedRows);
    });
  }
}
