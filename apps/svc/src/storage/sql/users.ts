import type { Kysely, Selectable, Transaction } from "kysely";
import type { HostCredential } from "../../code-host/host-account.ts";
import { credentialText, readCredential } from "../credential-text.ts";
import { formerLogin } from "../former-login.ts";
import type { SecretBox } from "../secret-box.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { asked } from "./asked.ts";
import type { Tables } from "./tables.ts";

/** A login that races with others meets each of their rows at most once. */
const MAX_TRIES = 5;

const COLUMNS = ["id", "login", "host_user_id", "created_at", "last_login_at"] as const;
type Row = Pick<Selectable<Tables["users"]>, (typeof COLUMNS)[number]>;

export class SqlUsers implements UserStore {
  readonly #db: Kysely<Tables>;
  readonly #box: SecretBox;
  readonly #isUniqueViolation: (error: unknown) => boolean;

  constructor(db: Kysely<Tables>, box: SecretBox, isUniqueViolation: (error: unknown) => boolean) {
    this.#db = db;
    this.#box = box;
    this.#isUniqueViolation = isUniqueViolation;
  }

  async ensure(login: string, id: string, now: number): Promise<UserRecord> {
    const key = login.toLowerCase();
    return asked(async () => {
      await this.#db
        .insertInto("users")
        .values({ ...NEW_USER, id, login, login_key: key, created_at: now })
        .onConflict((conflict) => conflict.column("login_key").doNothing())
        .execute();
      const row = await this.#db
        .updateTable("users")
        .set({ last_login_at: now })
        .where("login_key", "=", key)
        .returning(COLUMNS)
        .executeTakeFirstOrThrow();
      return fromRow(row);
    });
  }

  async ensureHost(hostUserId: string, login: string, id: string, now: number): Promise<UserRecord> {
    return asked(async () => {
      for (let tries = 1; ; tries++) {
        try {
          const row = await this.#db
            .transaction()
            .execute(async (transaction) => loginOfHostUser(transaction, hostUserId, login, id, now));
          return fromRow(row);
        } catch (error) {
          // Somebody with that host id or login was written meanwhile: now there is a row to find.
          if (!this.#isUniqueViolation(error) || tries === MAX_TRIES) throw error;
        }
      }
    });
  }

  async get(id: string): Promise<UserRecord | undefined> {
    return asked(async () => {
      const row = await this.#db.selectFrom("users").select(COLUMNS).where("id", "=", id).executeTakeFirst();
      return row === undefined ? undefined : fromRow(row);
    });
  }

  async list(): Promise<readonly UserRecord[]> {
    return asked(async () => {
      const rows = await this.#db
        .selectFrom("users")
        .select([...COLUMNS, "login_key"])
        .execute();
      return rows.toSorted((a, b) => (a.login_key < b.login_key ? -1 : 1)).map(fromRow);
    });
  }

  async credential(userId: string): Promise<HostCredential | undefined> {
    return asked(async () => {
      const row = await this.#db
        .selectFrom("users")
        .select("credential")
        .where("id", "=", userId)
        .executeTakeFirst();
      const sealed = row?.credential ?? undefined;
      return sealed === undefined
        ? undefined
        : readCredential(this.#box.open(sealed, credentialPlace(userId)));
    });
  }

  async putCredential(userId: string, credential: HostCredential, now: number): Promise<void> {
    const sealed = this.#box.seal(credentialText(credential), credentialPlace(userId));
    await asked(async () => {
      await this.#db
        .updateTable("users")
        .set({ credential: sealed, credential_at: now })
        .where("id", "=", userId)
        .execute();
    });
  }

  async removeCredential(userId: string): Promise<boolean> {
    return asked(async () => {
      const { numUpdatedRows } = await this.#db
        .updateTable("users")
        .set({ credential: null, credential_at: null })
        .where("id", "=", userId)
        .where("credential", "is not", null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    });
  }
}

/** What a user's credential is sealed for. */
export function credentialPlace(userId: string): string {
  return `users/${userId}`;
}

const NEW_USER = {
  credential: null,
  credential_at: null,
  host_user_id: null,
  last_login_at: null,
} as const;

async function loginOfHostUser(
  transaction: Transaction<Tables>,
  hostUserId: string,
  login: string,
  id: string,
  now: number,
): Promise<Row> {
  const key = login.toLowerCase();
  const holder = await transaction
    .selectFrom("users")
    .select(["id", "login", "host_user_id"])
    .where("login_key", "=", key)
    .executeTakeFirst();
  if (holder !== undefined && holder.host_user_id !== hostUserId) {
    const former = formerLogin(holder);
    await transaction
      .updateTable("users")
      .set({ login: former, login_key: former.toLowerCase() })
      .where("id", "=", holder.id)
      .execute();
  }
  const known = await transaction
    .updateTable("users")
    .set({ login, login_key: key, last_login_at: now })
    .where("host_user_id", "=", hostUserId)
    .returning(COLUMNS)
    .executeTakeFirst();
  if (known !== undefined) return known;
  return transaction
    .insertInto("users")
    .values({
      ...NEW_USER,
      id,
      login,
      login_key: key,
      host_user_id: hostUserId,
      created_at: now,
      last_login_at: now,
    })
    .returning(COLUMNS)
    .executeTakeFirstOrThrow();
}

function fromRow(row: Row): UserRecord {
  return {
    id: row.id,
    login: row.login,
    hostUserId: row.host_user_id ?? undefined,
    createdAt: row.created_at,
    lastLoginAt: row.last_login_at ?? undefined,
  };
}
