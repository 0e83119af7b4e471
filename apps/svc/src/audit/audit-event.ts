/** Actions of audit records (spec/svc.md section 5): the object, then the action. */
export const AUDIT_ACTIONS = [
  "login.succeeded",
  "login.failed",
  "session.ended",
  "account.disconnected",
  "token.created",
  "token.revoked",
  "admin_token.created",
  "admin_token.revoked",
  "app.created",
  "app.updated",
  "app.deleted",
  "installation_token.issued",
  "installation_token.revoked",
  "cached_repository.added",
  "cached_repository.updated",
  "cached_repository.removed",
  "cached_repository.purged",
  "cached_repository.warmed",
  "git.fetch",
  "git.push",
  "git.ensure",
  "git.seed",
  "api.write",
  "access.denied",
  "encryption.rekeyed",
  "backup.created",
  "backup.restored",
  "configuration.reloaded",
  "webhook.received",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditOutcome = "allowed" | "denied" | "failed";

/** The caller. No field holds a secret. */
export interface AuditActor {
  readonly kind:
    | "anonymous"
    | "foreign"
    | "user"
    | "proxy_token"
    | "agent_token"
    | "administration_token"
    | "system";
  /** Login at the code host, where it is known. */
  readonly login?: string | undefined;
  /** Id of the token or session that was used. */
  readonly credentialId?: string | undefined;
}

export interface AuditEvent {
  readonly action: AuditAction;
  readonly outcome: AuditOutcome;
  readonly actor: AuditActor;
  /** Object of the action: `owner/name`, a token's id, a login, an API path without query. */
  readonly target?: string | undefined;
  readonly remoteAddress?: string | undefined;
  readonly requestId?: string | undefined;
  /** Further facts: few, short, never a secret, never a body. */
  readonly details?: Readonly<Record<string, string | number | boolean>> | undefined;
}

/**
 * Receiver of events from every part. It never throws and never waits, because the service must work without its
 * database. The log line is written immediately, and the events are stored in batches after the requests.
 */
export interface AuditTrail {
  record(event: AuditEvent): void;
}
