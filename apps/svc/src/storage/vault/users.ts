import { Secret } from "@devplat/base";
import type { HostCredential } from "../../code-host/host-account.ts";
import { credentialText, readCredential } from "../credential-text.ts";
import { formerLogin } from "../former-login.ts";
import type { UserRecord, UserStore } from "../store.ts";
import { nameFor, type VaultKv } from "./kv.ts";

/** A user; the credential lies open here, because Vault encrypts all that it stores. */
interface UserDocument extends UserRecord {
  readonly credential?: string;
}

/** Whose a login or a host id is; null: nobody's any more. */
interface Claim {
  readonly id: string | null;
}

/**
 * A user's document is found by its id, and by two claims: its login and its id at the code host. A claim is written
 * first, so that a writer who died in the middle leaves a claim without a document, which the next login fills.
 */
export class VaultUsers implements UserStore {
  readonly #kv: VaultKv;

  constructor(kv: VaultKv) {
    this.#kv = kv;
  }

  async ensure(login: string, id: string, now: number): Promise<UserRecord> {
    const owner = await this.#claim(loginPath(login), id);
    return this.#logIn(owner, now, { login, hostUserId: undefined });
  }

  async ensureHost(hostUserId: string, login: string, id: string, now: number): Promise<UserRecord> {
    const owner = await this.#claim(`user-host-ids/${nameFor(hostUserId)}`, id);
    const before = (await this.get(owner))?.login;
    await this.#takeLogin(login, owner);
    if (before !== undefined && before.toLowerCase() !== login.toLowerCase()) {
      await this.#release(loginPath(before), owner);
    }
    return this.#logIn(owner, now, { login, hostUserId });
  }

  async get(id: string): Promise<UserRecord | undefined> {
    const stored = await this.#kv.read<UserDocument>(userPath(id));
    return stored === undefined ? undefined : recordOf(stored.value);
  }

  async list(): Promise<readonly UserRecord[]> {
    const ids = await this.#kv.list("users");
    const documents = await this.#kv.readAll<UserDocument>(ids.map(userPath));
    return documents
      .map(({ value }) => recordOf(value))
      .toSorted((a, b) => (a.login.toLowerCase() < b.login.toLowerCase() ? -1 : 1));
  }

  async credential(userId: string): Promise<HostCredential | undefined> {
    const text = (await this.#kv.read<UserDocument>(userPath(userId)))?.value.credential;
    return text === undefined ? undefined : readCredential(new Secret(text));
  }

  async putCredential(userId: string, credential: HostCredential): Promise<void> {
    await this.#kv.change<UserDocument>(userPath(userId), (user) =>
      user === undefined ? undefined : { ...user, credential: credentialText(credential).reveal() },
    );
  }

  async removeCredential(userId: string): Promise<boolean> {
    let removed = false;
    await this.#kv.change<UserDocument>(userPath(userId), (user) => {
      removed = user?.credential !== undefined;
      if (user === undefined || !removed) return undefined;
      const { credential: _, ...rest } = user;
      return rest;
    });
    return removed;
  }

  /** Whose the name is: who had it before, or else the given id. */
  async #claim(path: string, id: string): Promise<string> {
    const claim = await this.#kv.change<Claim>(path, (present) =>
      present === undefined || present.id === null ? { id } : undefined,
    );
    return claim?.id ?? id;
  }

  async #release(path: string, id: string): Promise<void> {
    await this.#kv.change<Claim>(path, (present) => (present?.id === id ? { id: null } : undefined));
  }

  /** The login becomes the user's; a record that held it is renamed. */
  async #takeLogin(login: string, id: string): Promise<void> {
    let former: string | null = null;
    await this.#kv.change<Claim>(loginPath(login), (present) => {
      former = present?.id ?? null;
      return former === id ? undefined : { id };
    });
    if (former === null || former === id) return;
    const holder = await this.#kv.change<UserDocument>(userPath(former), (user) =>
      user === undefined || user.login.toLowerCase() !== login.toLowerCase()
        ? undefined
        : { ...user, login: formerLogin(user) },
    );
    if (holder !== undefined) await this.#claim(loginPath(holder.login), holder.id);
  }

  async #logIn(
    id: string,
    now: number,
    as: { readonly login: string; readonly hostUserId: string | undefined },
  ): Promise<UserRecord> {
    const user = await this.#kv.change<UserDocument>(userPath(id), (present) => {
      if (present === undefined) return { id, ...as, createdAt: now, lastLoginAt: now };
      const login = as.hostUserId === undefined ? present.login : as.login;
      return { ...present, login, lastLoginAt: now };
    });
    return recordOf(user ?? { id, ...as, createdAt: now, lastLoginAt: now });
  }
}

function userPath(id: string): string {
  return `users/${id}`;
}

function loginPath(login: string): string {
  return `user-logins/${nameFor(login.toLowerCase())}`;
}

function recordOf({ id, login, hostUserId, createdAt, lastLoginAt }: UserDocument): UserRecord {
  return { id, login, hostUserId, createdAt, lastLoginAt };
}
