import type { AuditRecord } from "../../audit/audit-store.ts";
import type { SecretBox } from "../secret-box.ts";
import type { AppRecord, CachedRepositoryRecord, SessionRecord, TokenRecord, UserRecord } from "../store.ts";
import { rowReader, toRow, type Tables } from "./tables.ts";

/*
 * Records as rows. An SQL database has these rows, and a backup of every database.
 */

export const userOf = rowReader<UserRecord>();

/** The name of a user's record whose login another user has now: no code host gives names with a tilde. */
export function formerLogin({ login, id }: { readonly login: string; readonly id: string }): string {
  return `${login}~${id.slice(-8)}`;
}

/** Record that a user's credential is sealed for. */
export function credentialPlace(userId: string): string {
  return `users/${userId}`;
}

const readSession = rowReader<SessionRecord>();

export function sessionOf(row: Tables["sessions"]): SessionRecord {
  const record = readSession(row);
  // An unknown role has the fewest rights.
  return { ...record, role: record.role === "admin" ? "admin" : "user" };
}

export const tokenOf = rowReader<TokenRecord>({ json: ["repositories", "scopes", "ipAllow"] });

export function repositoryRow(record: CachedRepositoryRecord): Tables["cached_repositories"] {
  return { ...toRow(record), key: `${record.owner}/${record.name}`.toLowerCase() };
}

const readRepository = rowReader<CachedRepositoryRecord>({ flags: ["enabled", "seed", "bundles"] });

export function repositoryOf(row: Tables["cached_repositories"]): CachedRepositoryRecord {
  const { key: _, ...columns } = row;
  return readRepository(columns);
}

const readApp = rowReader<AppRecord>({ flags: ["isDefault"] });

export function appRow(record: AppRecord, box: SecretBox): Tables["apps"] {
  return toRow({
    ...record,
    privateKey: box.seal(record.privateKey, privateKeyPlace(record.id)),
    webhookSecret: record.webhookSecret && box.seal(record.webhookSecret, webhookSecretPlace(record.id)),
  });
}

export function appOf(row: Tables["apps"], box: SecretBox): AppRecord {
  return {
    ...readApp(row),
    privateKey: box.open(row.private_key, privateKeyPlace(row.id)),
    webhookSecret:
      row.webhook_secret === null ? undefined : box.open(row.webhook_secret, webhookSecretPlace(row.id)),
  };
}

/** Record that an app's private key is sealed for. */
export function privateKeyPlace(id: string): string {
  return `apps/${id}/private_key`;
}

/** Record that an app's webhook secret is sealed for. */
export function webhookSecretPlace(id: string): string {
  return `apps/${id}/webhook_secret`;
}

export function auditRow(record: AuditRecord): Tables["audit"] {
  const { actor, target } = record;
  return {
    id: record.id,
    at: record.at,
    action: record.action,
    outcome: record.outcome,
    actor_kind: actor.kind,
    actor_login: actor.login ?? null,
    actor_key: actor.login?.toLowerCase() ?? null,
    credential_id: actor.credentialId ?? null,
    target: target ?? null,
    target_key: target?.toLowerCase() ?? null,
    remote_address: record.remoteAddress ?? null,
    request_id: record.requestId ?? null,
    details: record.details === undefined ? null : JSON.stringify(record.details),
  };
}

const readAudit = rowReader<Required<Omit<AuditRecord, "actor">>>({ json: ["details"] });

export function auditRecordOf(row: Tables["audit"]): AuditRecord {
  const { actor_kind: kind, actor_login: login, credential_id: credentialId, ...others } = row;
  const { actor_key: _actor, target_key: _target, ...columns } = others;
  return {
    ...readAudit(columns),
    actor: { kind, login: login ?? undefined, credentialId: credentialId ?? undefined },
  };
}
