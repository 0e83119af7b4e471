import type { Kysely, Transaction } from "kysely";
import { credentialText, readCredential } from "../credential-text.ts";
import type { SecretBox } from "../secret-box.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { credentialPlace, formerLogin, userOf } from "../rows/records.ts";
import { toRow, type Row, type Tables } from "../rows/tables.ts";

/** Maximum tries of a login. Each try loses to at most one other login of the same user. */
const MAX_TRIES = 5;

const COLUMNS = ["id", "login", "host_user_id", "created_at", "last_login_at"] as const;

export function sqlUsers(
  db: Kysely<Tables>,
  box: SecretBox,
  isUniqueViolation: (error: unknown) => boolean,
): UserStore {
  return {
    async ensure(login, id, now) {
      const user = { id, login, hostUserId: undefined, createdAt: now, lastLoginAt: undefined };
      await db
        .insertInto("users")
        .values(rowOf(user))
        .onConflict((conflict) => conflict.column("login_key").doNothing())
        .execute();
      const row = await db
        .updateTable("users")
        .set({ last_login_at: now })
        .where("login_key", "=", login.toLowerCase())
        .returning(COLUMNS)
        .executeTakeFirstOrThrow();
      return userOf(row);
    },

    async ensureHost(hostUserId, login, id, now) {
      const user = { id, login, hostUserId, createdAt: now, lastLoginAt: now };
      for (let tries = 1; ; tries++) {
        try {
          return userOf(
            await db.transaction().execute(async (transaction) => logInHostUser(transaction, user)),
          );
        } catch (error) {
          // Another login wrote this host id or login first, so the next try finds a row.
          if (!isUniqueViolation(error) || tries === MAX_TRIES) throw error;
        }
      }
    },

    async get(id) {
      const row = await db.selectFrom("users").select(COLUMNS).where("id", "=", id).executeTakeFirst();
      return row && userOf(row);
    },

    async list() {
      const rows = await db.selectFrom("users").select(COLUMNS).execute();
      return rows.map(userOf).toSorted((a, b) => (a.login.toLowerCase() < b.login.toLowerCase() ? -1 : 1));
    },

    async credential(userId) {
      const row = await db
        .selectFrom("users")
        .select("credential")
        .where("id", "=", userId)
        .executeTakeFirst();
      const sealed = row?.credential ?? undefined;
      return sealed === undefined ? undefined : readCredential(box.open(sealed, credentialPlace(userId)));
    },

    async putCredential(userId, credential, now) {
      const sealed = box.seal(credentialText(credential), credentialPlace(userId));
      await db
        .updateTable("users")
        .set({ credential: sealed, credential_at: now })
        .where("id", "=", userId)
        .execute();
    },

    async removeCredential(userId) {
      const { numUpdatedRows } = await db
        .updateTable("users")
        .set({ credential: null, credential_at: null })
        .where("id", "=", userId)
        .where("credential", "is not", null)
        .executeTakeFirst();
      return numUpdatedRows === 1n;
    },
  };
}

async function logInHostUser(
  transaction: Transaction<Tables>,
  user: UserRecord & { readonly hostUserId: string },
): Promise<Row<UserRecord>> {
  const { login, hostUserId, lastLoginAt } = user;
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
    .set({ login, login_key: key, last_login_at: lastLoginAt })
    .where("host_user_id", "=", hostUserId)
    .returning(COLUMNS)
    .executeTakeFirst();
  if (known !== undefined) return known;
  return transaction.insertInto("users").values(rowOf(user)).returning(COLUMNS).executeTakeFirstOrThrow();
}

function rowOf(user: UserRecord): Tables["users"] {
  return { ...toRow(user), login_key: user.login.toLowerCase(), credential: null, credential_at: null };
}
