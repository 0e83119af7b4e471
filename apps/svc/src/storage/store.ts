import type { Secret } from "@devplat/base";
import type { HostCredential } from "../code-host/host-account.ts";
import type { AuditStore } from "../audit/audit-store.ts";
import type {
  ChangeStore,
  EpochStore,
  InstanceStore,
  LeaseStore,
  ManifestPointerStore,
  SharedFetchStore,
} from "./coordination-store.ts";

/*
 * Times are milliseconds since the Unix epoch, and ids are UUIDv7. Records are values, never live objects. They have
 * no fields that their type does not have. A store may leave out fields that are undefined.
 */

export interface CachedRepositoryRecord {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Undefined: the default. */
  readonly timeoutSeconds: number | undefined;
  /** Undefined: no limit. */
  readonly maxCacheSizeMb: number | undefined;
  /** Whether seeds are made and sent. Undefined: the default, true. */
  readonly seed: boolean | undefined;
  /** Whether git is offered seeds as bundles. Undefined: the default, false. */
  readonly bundles: boolean | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** 1 on creation, one more with each update. */
  readonly version: number;
}

export interface UserRecord {
  readonly id: string;
  /** As the code host last gave it; unique in any case of letters. */
  readonly login: string;
  /** The code host's own id of the user; undefined: never logged in there (development mode's test login). */
  readonly hostUserId: string | undefined;
  readonly createdAt: number;
  readonly lastLoginAt: number | undefined;
}

export type Role = "user" | "admin";

/** A login session, or an administration token; both are `svcr_` secrets, of which only the SHA-256 is stored. */
export interface SessionRecord {
  readonly id: string;
  readonly kind: "session" | "administration";
  /** SHA-256 of the token, hexadecimal. */
  readonly tokenHash: string;
  /** The token's first characters, for people to tell tokens apart. */
  readonly tokenStart: string;
  readonly userId: string;
  readonly role: Role;
  /** Purpose of an administration token. For a session, the program that got it by the device flow, if one did. */
  readonly name: string | undefined;
  readonly createdIp: string | undefined;
  /** The `User-Agent` that it began with, shortened by the caller. */
  readonly userAgent: string | undefined;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly lastSeenAt: number | undefined;
  /** For an administration token: id of the session or administration token that made it. */
  readonly mintedBy: string | undefined;
}

export type Level = "read" | "write";

export interface TokenRecord {
  readonly id: string;
  readonly type: "proxy" | "agent";
  readonly tokenHash: string;
  readonly tokenStart: string;
  readonly userId: string;
  /** `owner/name` each, or `["*"]`. */
  readonly repositories: readonly string[];
  /** By resource; the resource `*` stands for all. */
  readonly scopes: Readonly<Record<string, Level>>;
  readonly description: string | undefined;
  /** The caller's own label for the run that the token was minted for. */
  readonly sessionId: string | undefined;
  /** Agent tokens: id of the {@link AppRecord} whose installation gives the credential. */
  readonly appId: string | undefined;
  /** Agent tokens: the account that the app is installed for, or the installation's id. */
  readonly installation: string | undefined;
  /** Addresses and networks that may use it; empty = every one. */
  readonly ipAllow: readonly string[];
  /** Requests per minute that it may make, if it has a bound of its own. */
  readonly requestsPerMinute: number | undefined;
  /** Id of the {@link SessionRecord} that it was made with; undefined: made before this was kept. */
  readonly mintedBy: string | undefined;
  readonly createdAt: number;
  /** Undefined: never. */
  readonly expiresAt: number | undefined;
  readonly revokedAt: number | undefined;
  readonly lastUsedAt: number | undefined;
  readonly lastIp: string | undefined;
  readonly useCount: number;
}

export interface TokenQuery {
  /** Undefined: of all users. */
  readonly userId?: string | undefined;
  /** Only those that were made with this session. */
  readonly mintedBy?: string | undefined;
  /** {@link TokenPage.next} of the page before; a text that is none gives an empty page. */
  readonly cursor?: string | undefined;
  readonly limit: number;
}

export interface TokenPage {
  readonly records: readonly TokenRecord[];
  /** Undefined: there is no more. */
  readonly next: string | undefined;
}

/** Uses of one token since the last report. */
export interface TokenUse {
  readonly id: string;
  readonly uses: number;
  readonly lastUsedAt: number;
  readonly lastIp: string;
}

/** A registered code-host app. */
export interface AppRecord {
  readonly id: string;
  /** The code host's id of the app. */
  readonly appId: string;
  readonly slug: string;
  readonly name: string;
  readonly ownerLogin: string | undefined;
  readonly clientId: string | undefined;
  readonly privateKey: Secret;
  readonly webhookSecret: Secret | undefined;
  /** At most one app is the default. */
  readonly isDefault: boolean;
  readonly source: "configuration" | "api" | "manifest";
  readonly createdAt: number;
  readonly updatedAt: number;
  /** 1 on creation, one more with each update. */
  readonly version: number;
}

/** Something that is used once or for a short time, by whichever instance is asked: device codes, OAuth states, replay marks. */
export interface OneTimeRecord {
  readonly kind: string;
  /** A hash of what the outside world shows, never that itself. */
  readonly key: string;
  /** Encrypted at rest. */
  readonly value: string;
  readonly expiresAt: number;
}

/**
 * Data that the service keeps. Every method may throw SvcError `database_unavailable`, or `database_contention` if others
 * change the same record (both with remedy `retry`), and no other code than those named. A write that has resolved survives
 * a crash of the process. `undefined` and `false` mean "not there"; they are never errors.
 */
export interface Store {
  readonly cachedRepositories: CachedRepositoryStore;
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly tokens: TokenStore;
  readonly apps: AppStore;
  readonly oneTime: OneTimeStore;
  readonly leases: LeaseStore;
  readonly epochs: EpochStore;
  readonly changes: ChangeStore;
  readonly instances: InstanceStore;
  readonly sharedFetches: SharedFetchStore;
  readonly manifestPointers: ManifestPointerStore;
  readonly audit: AuditStore;
  /**
   * Encrypts secrets again that are not under the current key. It may run while the service runs, and again after it was
   * interrupted.
   *
   * @param progress called with the number done and the number found, now and then
   * @returns how many secrets were encrypted; 0 in a store that encrypts by itself
   * @throws SvcError `encryption_key`: a secret is under a key that is not known here
   */
  rekey(progress: (done: number, total: number) => void): Promise<number>;
  /** Whether the database answers. */
  ping(): Promise<void>;
  close(): Promise<void>;
}

export interface CachedRepositoryStore {
  /** Ordered by owner, then name, both case-insensitively. */
  list(): Promise<readonly CachedRepositoryRecord[]>;
  /** @throws SvcError `already_exists`: owner and name are listed, in any case of letters */
  insert(record: CachedRepositoryRecord): Promise<void>;
  /**
   * Replaces the record if the stored version is `record.version - 1`: of two updates that started from the same
   * version, one gets false. Owner and name do not change.
   */
  update(record: CachedRepositoryRecord): Promise<boolean>;
  delete(id: string): Promise<boolean>;
}

export interface UserStore {
  /** A login under that name, in any case of letters; the user is created with `id` when new. Safe to race. */
  ensure(login: string, id: string, now: number): Promise<UserRecord>;
  /**
   * A login of the code host's user: found by the code host's id, so that a renamed login keeps its record. Created with
   * `id` when new; a record that held the login under another host id, or none, loses it (it becomes `login~<end of its id>`,
   * which no code host gives), so that nobody inherits tokens or roles with a login. Safe to race.
   */
  ensureHost(hostUserId: string, login: string, id: string, now: number): Promise<UserRecord>;
  get(id: string): Promise<UserRecord | undefined>;
  /** All, ordered by login without regard to case. */
  list(): Promise<readonly UserRecord[]>;
  /** The user's code-host credential, decrypted. @throws SvcError `encryption_key`: encrypted with a key not known here */
  credential(userId: string): Promise<HostCredential | undefined>;
  /** Encrypts and stores it, in the place of an earlier one. */
  putCredential(userId: string, credential: HostCredential, now: number): Promise<void>;
  /** False: there was none. */
  removeCredential(userId: string): Promise<boolean>;
}

export interface SessionStore {
  insert(record: SessionRecord): Promise<void>;
  /** Also one that has expired: the caller looks at `expiresAt`. */
  findByHash(tokenHash: string): Promise<SessionRecord | undefined>;
  /** Also one that has expired. */
  get(id: string): Promise<SessionRecord | undefined>;
  /** Newest first, those that expired too. */
  list(filter?: {
    readonly userId?: string | undefined;
    readonly kind?: SessionRecord["kind"] | undefined;
  }): Promise<readonly SessionRecord[]>;
  /** Notes when it was last used; nothing happens when it is gone. */
  recordSeen(id: string, at: number): Promise<void>;
  delete(id: string): Promise<boolean>;
  /** Deletes a user's sessions, of one kind or all. */
  deleteOfUser(userId: string, kind?: SessionRecord["kind"]): Promise<number>;
  deleteExpired(before: number): Promise<number>;
}

export interface TokenStore {
  insert(record: TokenRecord): Promise<void>;
  /** Also one that has expired or is revoked. */
  findByHash(tokenHash: string): Promise<TokenRecord | undefined>;
  get(id: string): Promise<TokenRecord | undefined>;
  /** Newest first. Revoked ones are left out, expired ones are not. */
  list(query: TokenQuery): Promise<TokenPage>;
  /** How many tokens that are good now were made with each of these sessions; sessions with none are left out. */
  countMintedBy(sessionIds: readonly string[], now: number): Promise<ReadonlyMap<string, number>>;
  /** False: not there, or revoked before. */
  revoke(id: string, now: number): Promise<boolean>;
  /** Adds to the counters; uses of tokens that are gone are dropped. */
  recordUses(uses: readonly TokenUse[]): Promise<void>;
  /** Deletes tokens that expired or were revoked before then. */
  deleteEnded(before: number): Promise<number>;
}

export interface AppStore {
  /** Ordered by name, then id. @throws SvcError `encryption_key` */
  list(): Promise<readonly AppRecord[]>;
  /** @throws SvcError `encryption_key` */
  get(id: string): Promise<AppRecord | undefined>;
  /** A default app takes that from every other. @throws SvcError `already_exists`: the `appId` is registered */
  insert(record: AppRecord): Promise<void>;
  /**
   * Replaces the record if the stored version is `record.version - 1`; `appId`, `source` and `createdAt` do not change.
   * A default app takes that from every other (whose versions grow by one).
   */
  update(record: AppRecord): Promise<boolean>;
  delete(id: string): Promise<boolean>;
}

/** An entry that has expired is as good as gone, whether or not it was cleared away. */
export interface OneTimeStore {
  /** False: that kind and key are there, and not expired; nothing is changed then. */
  put(record: OneTimeRecord, now: number): Promise<boolean>;
  get(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined>;
  /** Puts a value in the place of the one read: of two callers that read the same value, one gets false. Its expiry stays. */
  replace(kind: string, key: string, from: string, to: string, now: number): Promise<boolean>;
  /** Gives the entry and removes it: of racing callers, exactly one gets it. */
  take(kind: string, key: string, now: number): Promise<OneTimeRecord | undefined>;
  deleteExpired(now: number): Promise<number>;
}
