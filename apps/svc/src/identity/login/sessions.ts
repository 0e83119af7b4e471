import { randomUUIDv7 } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import { SvcError } from "../../errors.ts";
import type { Role, SessionRecord, Store, UserRecord } from "../../storage/store.ts";
import type { Client } from "../client.ts";
import type { Identity } from "../principal.ts";
import { createToken, isWellFormed, tokenHash, tokenStart } from "../../credentials/token-format.ts";

/** Life of a login session, in milliseconds: 30 days (spec/svc.md section 5). */
export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60 * 1000;

/** Milliseconds between two writes of the time when a session was last seen. */
const SEEN_STEP_MS = 60_000;

export interface StartedSession {
  /** Shown once. */
  readonly token: Secret;
  readonly record: SessionRecord;
  readonly identity: Identity;
}

/** A session with its user, and the role that it has now. */
export interface ListedSession {
  readonly record: SessionRecord;
  readonly identity: Identity;
}

/** Login sessions: `svcr_` tokens, as a bearer or in a cookie. */
export class Sessions {
  readonly #store: Store;
  readonly #clock: Clock;
  /** In lower case. */
  #admins: ReadonlySet<string>;
  readonly #recordedRoles: boolean;

  /**
   * @param admins logins that are admins, with any role in their sessions
   * @param recordedRoles whether the role that a session began with counts as well: only in development mode, whose
   *   test login gives any. Elsewhere a login that is removed from `admins` loses the role with the next request
   */
  constructor(
    store: Store,
    clock: Clock,
    options: { readonly admins: readonly string[]; readonly recordedRoles: boolean },
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#admins = lowerCaseSet(options.admins);
    this.#recordedRoles = options.recordedRoles;
  }

  /** Takes effect with the next request, also of running sessions. */
  setAdmins(admins: readonly string[]): void {
    this.#admins = lowerCaseSet(admins);
  }

  /**
   * Begins a session of a user.
   *
   * @param device the program that gets it by the device flow: it then has the admin role only if `role` says so, too
   */
  async start(user: UserRecord, role: Role, client: Client, device?: string): Promise<StartedSession> {
    const createdAt = this.#clock.now();
    const { token, record } = newSession(client, {
      kind: "session",
      userId: user.id,
      role,
      name: device,
      createdAt,
      expiresAt: createdAt + SESSION_LIFETIME_MS,
      mintedBy: undefined,
    });
    await this.#store.sessions.insert(record);
    return { token, record, identity: this.#identity(record, user.login) };
  }

  /** The user of a session token; undefined: it is not a session token, or it has expired. */
  async authenticate(token: string): Promise<Identity | undefined> {
    if (!isWellFormed(token)) return undefined;
    const record = await this.#store.sessions.findByHash(tokenHash(token));
    const now = this.#clock.now();
    if (record === undefined || record.expiresAt <= now) return undefined;
    const user = await this.#store.users.get(record.userId);
    if (user === undefined) return undefined;
    if (now - (record.lastSeenAt ?? 0) >= SEEN_STEP_MS) await this.#store.sessions.recordSeen(record.id, now);
    return this.#identity(record, user.login);
  }

  /** Ends a session by its token. @returns the session; undefined: there is no session with this token */
  async endByToken(token: string): Promise<SessionRecord | undefined> {
    const record = isWellFormed(token) ? await this.#store.sessions.findByHash(tokenHash(token)) : undefined;
    if (record?.kind !== "session") return undefined;
    return (await this.#store.sessions.delete(record.id)) ? record : undefined;
  }

  async end(sessionId: string): Promise<void> {
    await this.#store.sessions.delete(sessionId);
  }

  /** Live login sessions with their users, newest first: the caller's own; with `everybody` those of all. */
  async list(caller: Identity, everybody: boolean): Promise<readonly ListedSession[]> {
    const userId = everybody ? undefined : caller.userId;
    const records = await this.#store.sessions.list({ kind: "session", userId });
    const users = everybody
      ? new Map((await this.#store.users.list()).map((user) => [user.id, user.login]))
      : new Map([[caller.userId, caller.login]]);
    const now = this.#clock.now();
    return records
      .filter(({ expiresAt }) => expiresAt > now)
      .map((record) => ({ record, identity: this.#identity(record, users.get(record.userId) ?? "") }));
  }

  /** Ends one of the caller's sessions, or as an admin anybody's. @throws SvcError `not_found` */
  async revoke(caller: Identity, id: string): Promise<SessionRecord> {
    const record = await this.#store.sessions.get(id);
    const visible = caller.role === "admin" || record?.userId === caller.userId;
    if (record?.kind !== "session" || !visible || !(await this.#store.sessions.delete(id))) {
      throw new SvcError("not_found", "No session has this id");
    }
    return record;
  }

  /** Whether the login is an admin by configuration. */
  isAdmin(login: string): boolean {
    return this.#admins.has(login.toLowerCase());
  }

  #identity(record: SessionRecord, login: string): Identity {
    const recorded = this.#recordedRoles ? record.role : "user";
    const role = this.isAdmin(login) ? "admin" : recorded;
    const device = record.kind === "session" ? record.name : undefined;
    return {
      userId: record.userId,
      login,
      role: device !== undefined && record.role !== "admin" ? "user" : role,
      sessionId: record.id,
      kind: record.kind,
      ...(device === undefined ? {} : { device }),
    };
  }
}

/** A new token of a session or of the administration, with the record to be stored. */
export function newSession(
  { address, userAgent }: Client,
  fields: Omit<SessionRecord, "id" | "tokenHash" | "tokenStart" | "createdIp" | "userAgent" | "lastSeenAt">,
): { readonly token: Secret; readonly record: SessionRecord } {
  const token = createToken("session");
  const record = {
    ...fields,
    id: randomUUIDv7(),
    tokenHash: tokenHash(token.reveal()),
    tokenStart: tokenStart(token),
    createdIp: address === "" ? undefined : address,
    userAgent,
    lastSeenAt: undefined,
  };
  return { token, record };
}

function lowerCaseSet(logins: readonly string[]): ReadonlySet<string> {
  return new Set(logins.map((login) => login.toLowerCase()));
}
