import { Secret } from "@devplat/base";
import { credentialText, readCredential } from "../credential-text.ts";
import { formerLogin } from "../rows/records.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** A user, with the credential as plain text, because Vault encrypts all that it stores. */
export interface UserDocument extends UserRecord {
  readonly credential?: string;
}

/** User that has a login or a host id. Null: it is free again. */
interface Claim {
  readonly id: string | null;
}

/**
 * The document of a user is found by its id, and by two claims: its login and its id at the code host. A claim is written
 * first. A process that ends in between leaves a claim without a document, and the next login writes the document.
 */
export function vaultUsers(kv: VaultKv): UserStore {
  const get = async (id: string): Promise<UserRecord | undefined> => {
    const stored = await kv.read<UserDocument>(userPath(id));
    return stored && recordOf(stored.value);
  };

  /** Gives a free name to the id. @returns the id that has the name */
  const claim = async (path: string, id: string): Promise<string> => {
    const stored = await kv.change<Claim>(path, (present) =>
      present === undefined || present.id === null ? { id } : undefined,
    );
    return stored?.id ?? id;
  };

  const release = async (path: string, id: string): Promise<void> => {
    await kv.change<Claim>(path, (present) => (present?.id === id ? { id: null } : undefined));
  };

  /** Gives the login to the user, and renames a record that held it. */
  const takeLogin = async (login: string, id: string): Promise<void> => {
    let former: string | null = null;
    await kv.change<Claim>(loginPath(login), (present) => {
      former = present?.id ?? null;
      return former === id ? undefined : { id };
    });
    if (former === null || former === id) return;
    const holder = await kv.change<UserDocument>(userPath(former), (user) =>
      user === undefined || user.login.toLowerCase() !== login.toLowerCase()
        ? undefined
        : { ...user, login: formerLogin(user) },
    );
    if (holder !== undefined) await claim(loginPath(holder.login), holder.id);
  };

  const logIn = async (
    id: string,
    now: number,
    as: { readonly login: string; readonly hostUserId: string | undefined },
  ): Promise<UserRecord> => {
    const created = { id, ...as, createdAt: now, lastLoginAt: now };
    const user = await kv.change<UserDocument>(userPath(id), (present) => {
      if (present === undefined) return created;
      const login = as.hostUserId === undefined ? present.login : as.login;
      return { ...present, login, lastLoginAt: now };
    });
    return recordOf(user ?? created);
  };

  return {
    async ensure(login, id, now) {
      return logIn(await claim(loginPath(login), id), now, { login, hostUserId: undefined });
    },

    async ensureHost(hostUserId, login, id, now) {
      const owner = await claim(hostIdPath(hostUserId), id);
      const before = (await get(owner))?.login;
      await takeLogin(login, owner);
      if (before !== undefined && before.toLowerCase() !== login.toLowerCase()) {
        await release(loginPath(before), owner);
      }
      return logIn(owner, now, { login, hostUserId });
    },

    get,

    async list() {
      const ids = await kv.list("users");
      const documents = await kv.readAll<UserDocument>(ids.map(userPath));
      return documents
        .map(({ value }) => recordOf(value))
        .toSorted((a, b) => (a.login.toLowerCase() < b.login.toLowerCase() ? -1 : 1));
    },

    async credential(userId) {
      const text = (await kv.read<UserDocument>(userPath(userId)))?.value.credential;
      return text === undefined ? undefined : readCredential(new Secret(text));
    },

    async putCredential(userId, credential) {
      await kv.change<UserDocument>(
        userPath(userId),
        (user) => user && { ...user, credential: credentialText(credential).reveal() },
      );
    },

    async removeCredential(userId) {
      let removed = false;
      await kv.change<UserDocument>(userPath(userId), (user) => {
        removed = user?.credential !== undefined;
        if (user === undefined || !removed) return undefined;
        const { credential: _, ...rest } = user;
        return rest;
      });
      return removed;
    },
  };
}

export function userPath(id: string): string {
  return `users/${id}`;
}

export function loginPath(login: string): string {
  return `user-logins/${nameFor(login.toLowerCase())}`;
}

export function hostIdPath(hostUserId: string): string {
  return `user-host-ids/${nameFor(hostUserId)}`;
}

function recordOf({ id, login, hostUserId, createdAt, lastLoginAt }: UserDocument): UserRecord {
  return { id, login, hostUserId, createdAt, lastLoginAt };
}
