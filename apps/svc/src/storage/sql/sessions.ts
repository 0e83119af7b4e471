import type { Kysely, Selectable } from "kysely";
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
      await this.#db.insertInto("sessions").values(toRow(record)).execute();
    });
  }

  async findByHash(tokenHash: string): Promise<SessionRecord | undefined> {
    return this.#first("token_hash", tokenHash);
  }

  async get(id: string): Promise<SessionRecord | undefined> {
    return this.#first("id", id);
  }

  async list(filter: Parameters<SessionStore["list"]>[0] = {}): Promise<readonly SessionRecord[]> {
    return asked(async () => {
      let query = this.#db.selectFrom("sessions").selectAll();
      if (filter.userId !== undefined) query = query.where("user_id", "=", filter.userId);
      if (filter.kind !== undefined) query = query.where("kind", "=", filter.kind);
      const rows = await query.orderBy("created_at", "desc").orderBy("id", "desc").execute();
      return rows.map(fromRow);
    });
  }

  async recordSeen(id: string, at: number): Promise<void> {
    await asked(async () => {
      await this.#db.updateTable("sessions").set({ last_seen_at: at }).where("id", "=", id).execute();
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

  async deleteOfUser(userId: string, kind?: SessionRecord["kind"]): Promise<number> {
    return asked(async () => {
      let query = this.#db.deleteFrom("sessions").where("user_id", "=", userId);
      if (kind !== undefined) query = query.where("kind", "=", kind);
      const { numDeletedRows } = await query.executeTakeFirst();
      return Number(numDeletedRows);
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

  async #first(column: "id" | "token_hash", value: string): Promise<SessionRecord | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("sessions")
        .selectAll()
        .where(column, "=", value)
        .executeTakeFirst();
      return row === undefined ? undefined : fromRow(row);
    });
  }
}

function toRow(record: SessionRecord): Tables["sessions"] {
  return {
    id: record.id,
    kind: record.kind,
    token_hash: record.tokenHash,
    token_start: record.tokenStart,
    user_id: record.userId,
    role: record.role,
    created_at: record.createdAt,
    expires_at: record.expiresAt,
    name: record.name ?? null,
    created_ip: record.createdIp ?? null,
    user_agent: record.userAgent ?? null,
    last_seen_at: record.lastSeenAt ?? null,
    minted_by: record.mintedBy ?? null,
  };
}

function fromRow(row: Selectable<Tables["sessions"]>): SessionRecord {
  return {
    id: row.id,
    kind: row.kind === "administration" ? "administration" : "session",
    tokenHash: row.token_hash,
    tokenStart: row.token_start,
    userId: row.user_id,
    // Anything but the exact word is the lesser role.
    role: row.role === "admin" ? "admin" : "user",
    name: row.name ?? undefined,
    createdIp: row.created_ip ?? undefined,
    userAgent: row.user_agent ?? undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastSeenAt: row.last_seen_at ?? undefined,
    mintedBy: row.minted_by ?? undefined,
  };
}
