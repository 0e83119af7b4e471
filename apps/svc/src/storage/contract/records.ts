import type { AuditRecord } from "../../audit/audit-store.ts";
import { randomUUIDv7 } from "node:crypto";
import { Secret } from "@devplat/base";
import type { HostCredential } from "../../code-host/host-account.ts";
import type {
  AppRecord,
  CachedRepositoryRecord,
  OneTimeRecord,
  SessionRecord,
  Store,
  TokenRecord,
} from "../store.ts";

/** Records for the contract suite: complete, different from each other, with what a case changes. */
export function repositoryRecord(change: Partial<CachedRepositoryRecord> = {}): CachedRepositoryRecord {
  return {
    id: randomUUIDv7(),
    owner: "acme",
    name: "Widgets",
    enabled: true,
    timeoutSeconds: undefined,
    maxCacheSizeMb: undefined,
    seed: undefined,
    bundles: undefined,
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    version: 1,
    ...change,
  };
}

export function credential(accessToken: string, change: Partial<HostCredential> = {}): HostCredential {
  return {
    accessToken: new Secret(accessToken),
    refreshToken: undefined,
    expiresAt: undefined,
    ...change,
  };
}

export async function sessionRecord(
  store: Store,
  change: Partial<SessionRecord> = {},
  login = "alice",
): Promise<SessionRecord> {
  const id = randomUUIDv7();
  const user = await store.users.ensure(login, randomUUIDv7(), 1);
  return {
    id,
    kind: "session",
    tokenHash: `hash of ${id}`,
    tokenStart: "svcr_abcdefg",
    userId: user.id,
    role: "user",
    name: undefined,
    createdIp: undefined,
    userAgent: undefined,
    createdAt: 1_700_000_000_000,
    expiresAt: 1_700_000_060_000,
    lastSeenAt: undefined,
    mintedBy: undefined,
    ...change,
  };
}

export async function tokenRecord(
  store: Store,
  change: Partial<TokenRecord> = {},
  login = "alice",
): Promise<TokenRecord> {
  const id = randomUUIDv7();
  const user = await store.users.ensure(login, randomUUIDv7(), 1);
  return {
    id,
    type: "proxy",
    tokenHash: `hash of ${id}`,
    tokenStart: "svcx_abcdefg",
    userId: user.id,
    repositories: ["acme/Widgets"],
    scopes: { contents: "read", metadata: "read" },
    description: undefined,
    sessionId: undefined,
    appId: undefined,
    installation: undefined,
    ipAllow: [],
    requestsPerMinute: undefined,
    mintedBy: undefined,
    createdAt: 1_700_000_000_000,
    expiresAt: 1_700_000_060_000,
    revokedAt: undefined,
    lastUsedAt: undefined,
    lastIp: undefined,
    useCount: 0,
    ...change,
  };
}

export function appRecord(change: Partial<AppRecord> = {}): AppRecord {
  return {
    id: randomUUIDv7(),
    appId: "1001",
    slug: "acme-robots",
    name: "Acme robots",
    ownerLogin: undefined,
    clientId: undefined,
    privateKey: new Secret("a private key"),
    webhookSecret: undefined,
    isDefault: false,
    source: "api",
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_000_000,
    version: 1,
    ...change,
  };
}

export function oneTimeRecord(change: Partial<OneTimeRecord> = {}): OneTimeRecord {
  return { kind: "device_code", key: "5f".repeat(32), value: "pending", expiresAt: 1000, ...change };
}

export function auditRecord(change: Partial<AuditRecord> = {}): AuditRecord {
  return {
    id: randomUUIDv7(),
    at: 1_700_000_000_000,
    action: "token.created",
    outcome: "allowed",
    actor: { kind: "user", login: "alice", credentialId: undefined },
    target: undefined,
    remoteAddress: undefined,
    requestId: undefined,
    details: undefined,
    ...change,
  };
}

/**
 * A copy for comparisons: with the text of every secret, because two secrets are never equal, and without fields that are
 * undefined, which a store may leave out.
 */
export function comparable(value: unknown): unknown {
  if (value instanceof Secret) return { secret: value.reveal() };
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]) => (each === undefined ? [] : [[key, comparable(each)]])),
  );
}
