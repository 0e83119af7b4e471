import { randomUUIDv7 } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import type { Role, SessionRecord, Store } from "../storage/store.ts";
import { createToken, isWellFormed, tokenHash, tokenStart } from "../tokens/format.ts";

/** Life of a login session, in milliseconds: 30 days (spec/svc.md section 5). */
export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;

/** Who makes a management request. */
export interface Identity {
  readonly userId: string;
  readonly login: string;
  readonly role: Role;
  readonly sessionId: string;
}

export interface StartedSession {
  /** Shown once. */
  readonly token: Secret;
  readonly record: SessionRecord;
  readonly identity: Identity;
}

/** Login sessions: `svcr_` tokens, as a bearer or in a cookie. */
export class Sessions {
  readonly #store: Store;
  readonly #clock: Clock;
  /** In lower case. */
  readonly #admins: ReadonlySet<string>;

  /** @param admins logins that are admins whatever role their session has */
  constructor(store: Store, clock: Clock, admins: readonly string[]) {
    this.#store = store;
    this.#clock = clock;
    this.#admins = new Set(admins.map((login) => login.toLowerCase()));
  }

  /** Begins a session; the user is made when the login is new. */
  async start(login: string, role: Role): Promise<StartedSession> {
    const now = this.#clock.now();
    const user = await this.#store.users.ensure(login, randomUUIDv7(), now);
    const token = createToken("session");
    const record: SessionRecord = {
      id: randomUUIDv7(),
      kind: "session",
      tokenHash: tokenHash(token.reveal()),
      tokenStart: tokenStart(token),
      userId: user.id,
      role,
      name: undefined,
      createdIp: undefined,
      userAgent: undefined,
      createdAt: now,
      expiresAt: now + SESSION_LIFETIME_MS,
      lastSeenAt: undefined,
    };
    await this.#store.sessions.insert(record);
    return { token, record, identity: this.#identity(record, user.login) };
  }

  /** Whose session the token is; undefined: not one, or over. */
  async authenticate(token: string): Promise<Identity | undefined> {
    if (!isWellFormed(token)) return undefined;
    const record = await this.#store.sessions.findByHash(tokenHash(token));
    if (record === undefined || record.expiresAt <= this.#clock.now()) return undefined;
    const user = await this.#store.users.get(record.userId);
    return user === undefined ? undefined : this.#identity(record, user.login);
  }

  async end(sessionId: string): Promise<void> {
    await this.#store.sessions.delete(sessionId);
  }

  #identity(record: SessionRecord, login: string): Identity {
    const role = this.#admins.has(login.toLowerCase()) ? "admin" : record.role;
    return { userId: record.userId, login, role, sessionId: record.id };
  }
}
