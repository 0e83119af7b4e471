import type { Secret } from "@devplat/base";
import type { Kysely } from "kysely";
import type { SecretBox } from "../secret-box.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

export class SqlUsers implements UserStore {
  readonly #db: Kysely<Tables>;
  readonly #box: SecretBox;

  constructor(db: Kysely<Tables>, box: SecretBox) {
    this.#db = db;
    this.#box = box;
  }

  async ensure(login: string, id: string, now: number): Promise<UserRecord> {
    const key = login.toLowerCase();
    return asked(async () => {
      await this.#db
        .insertInto("users")
        .values({ id, login, login_key: key, created_at: now, credential: null, credential_at: null })
        .onConflict((conflict) => conflict.column("login_key").doNothing())
        .execute();
      const row = await this.#db
        .selectFrom("users")
        .select(["id", "login", "created_at"])
        .where("login_key", "=", key)
        .executeTakeFirstOrThrow();
      return { id: row.id, login: row.login, createdAt: row.created_at };
    });
  }

  async get(id: string): Promise<UserRecord | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("users")
        .select(["id", "login", "created_at"])
        .where("id", "=", id)
        .executeTakeFirst();
      return row === undefined ? undefined : { id: row.id, login: row.login, createdAt: row.created_at };
    });
  }

  async credential(userId: string): Promise<Secret | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("users")
        .select("credential")
        .where("id", "=", userId)
        .executeTakeFirst();
      const sealed = row?.credential ?? undefined;
      return sealed === undefined ? undefined : this.#box.open(sealed, sealedFor(userId));
    });
  }

  async putCredential(userId: string, credential: Secret, now: number): Promise<void> {
    await asked(async () => {
      await this.#db
        .updateTable("users")
        .set({ credential: this.#box.seal(credential, sealedFor(userId)), credential_at: now })
        .where("id", "=", userId)
        .execute();
    });
  }
}

function sealedFor(userId: string): string {
  return `users/${userId}`;
}
