import type { Secret } from "@devplat/base";

/** Times are milliseconds since the Unix epoch, ids are UUIDv7; records are values, never live objects. */
export interface CachedRepositoryRecord {
  readonly id: string;
  readonly owner: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Undefined: the default. */
  readonly timeoutSeconds: number | undefined;
  /** Undefined: no limit. */
  readonly maxCacheSizeMb: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** 1 on creation, one more with each update. */
  readonly version: number;
}

export interface UserRecord {
  readonly id: string;
  readonly login: string;
  readonly createdAt: number;
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
  readonly createdAt: number;
  readonly expiresAt: number;
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
  /** Addresses and networks that may use it; empty = every one. */
  readonly ipAllow: readonly string[];
  readonly createdAt: number;
  /** Undefined: never. */
  readonly expiresAt: number | undefined;
  readonly revokedAt: number | undefined;
  readonly lastUsedAt: number | undefined;
  readonly lastIp: string | undefined;
  readonly useCount: number;
}

/** Uses of one token since the last report. */
export interface TokenUse {
  readonly id: string;
  readonly uses: number;
  readonly lastUsedAt: number;
  readonly lastIp: string;
}

/**
 * What the service remembers. Every method may throw SvcError `database_unavailable` (remedy `retry`), and no other
 * code than those named. A write that has resolved survives a crash of the process. `undefined` and `false` mean "not there";
 * they are never errors.
 */
export interface Store {
  readonly cachedRepositories: CachedRepositoryStore;
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly tokens: TokenStore;
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
  /** The user with that login in any case of letters; created with `id` when new. Safe to race. */
  ensure(login: string, id: string, now: number): Promise<UserRecord>;
  get(id: string): Promise<UserRecord | undefined>;
  /** The user's code-host credential, decrypted. @throws SvcError `encryption_key`: encrypted with a key not known here */
  credential(userId: string): Promise<Secret | undefined>;
  /** Encrypts and stores it, in the place of an earlier one. */
  putCredential(userId: string, credential: Secret, now: number): Promise<void>;
}

export interface SessionStore {
  insert(record: SessionRecord): Promise<void>;
  /** Also one that has expired: the caller looks at `expiresAt`. */
  findByHash(tokenHash: string): Promise<SessionRecord | undefined>;
  delete(id: string): Promise<boolean>;
  deleteExpired(before: number): Promise<number>;
}

export interface TokenStore {
  insert(record: TokenRecord): Promise<void>;
  /** Also one that has expired or is revoked. */
  findByHash(tokenHash: string): Promise<TokenRecord | undefined>;
  get(id: string): Promise<TokenRecord | undefined>;
  /** Newest first; of one user, or of all. Revoked ones are left out. */
  list(userId: string | undefined): Promise<readonly TokenRecord[]>;
  /** False: not there, or revoked before. */
  revoke(id: string, now: number): Promise<boolean>;
  /** Adds to the counters; uses of tokens that are gone are dropped. */
  recordUses(uses: readonly TokenUse[]): Promise<void>;
  /** Deletes tokens that expired or were revoked before then. */
  deleteEnded(before: number): Promise<number>;
}
