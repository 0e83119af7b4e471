import type { Actor } from "../../identity/principal.ts";
import type { Clock, Secret } from "@devplat/base";
import { actionEvent } from "../../identity/audit-source.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import { FieldError, SvcError } from "../../errors.ts";
import type { DerivedTokens, DerivedTokensAction } from "./derived-tokens.ts";
import type { SessionRecord, SessionStore } from "../../storage/store.ts";
import { lifetimeOf } from "../../tokens/duration.ts";
import { requireAdmin } from "../permission.ts";
import { requireRunningSession } from "./running-session.ts";
import { adminTokenRequestSchema } from "./token-input.ts";
import { validateBody } from "../../http/request/validation.ts";
import { newSession } from "../../identity/login/sessions.ts";

export interface AdminTokensParts {
  readonly sessions: SessionStore;
  readonly derived: Pick<DerivedTokens, "revoke">;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  /** Longest life, in milliseconds. */
  readonly maxDurationMs: number;
}

/**
 * Administration tokens (`svcr_`): for programs that manage the service. A token acts as the admin who made it, for as long
 * as that login is an admin. Every admin sees and revokes all of them. Every method throws SvcError `forbidden` for others.
 */
export class AdminTokens {
  readonly #parts: AdminTokensParts;

  constructor(parts: AdminTokensParts) {
    this.#parts = parts;
  }

  /**
   * Issues a token. Its value is in the result, and nowhere else.
   *
   * @throws SvcError `invalid_fields`; ProblemError
   */
  async create(actor: Actor, input: unknown): Promise<{ token: Secret; record: SessionRecord }> {
    requireAdmin(actor);
    const request = validateBody(adminTokenRequestSchema, input);
    const { sessions, audit, clock, maxDurationMs } = this.#parts;
    const lifetime = lifetimeOf(request.duration, maxDurationMs);
    if (typeof lifetime === "string") throw new FieldError([{ pointer: "/duration", message: lifetime }]);
    const createdAt = clock.now();
    const { token, record } = newSession(actor.client, {
      kind: "administration",
      userId: actor.userId,
      role: "admin",
      name: request.name,
      createdAt,
      expiresAt: createdAt + lifetime,
      mintedBy: actor.sessionId,
    });
    await sessions.insert(record);
    await requireRunningSession(sessions, actor, async () => sessions.delete(record.id));
    const details = { name: request.name, expires_at: new Date(record.expiresAt).toISOString() };
    audit.record(actionEvent(actor, "admin_token.created", record.id, details));
    return { token, record };
  }

  /** Tokens that are valid now, newest first. */
  async list(actor: Actor): Promise<readonly SessionRecord[]> {
    requireAdmin(actor);
    const now = this.#parts.clock.now();
    const all = await this.#parts.sessions.list({ kind: "administration" });
    return all.filter(({ expiresAt }) => expiresAt > now);
  }

  /** @throws SvcError `not_found` */
  async get(actor: Actor, id: string): Promise<SessionRecord> {
    requireAdmin(actor);
    const record = await this.#parts.sessions.get(id);
    if (record?.kind !== "administration" || record.expiresAt <= this.#parts.clock.now()) {
      throw new SvcError("not_found", "No administration token has this id");
    }
    return record;
  }

  /**
   * @param tokens action on the tokens that were made with it
   * @throws SvcError `not_found`
   */
  async revoke(actor: Actor, id: string, tokens: DerivedTokensAction = "keep"): Promise<void> {
    const { sessions, derived, audit } = this.#parts;
    const { name = "" } = await this.get(actor, id);
    if (!(await sessions.delete(id))) throw new SvcError("not_found", "No administration token has this id");
    const revoked = tokens === "revoke" ? await derived.revoke(actor, id) : 0;
    audit.record(actionEvent(actor, "admin_token.revoked", id, { name, tokens_revoked: revoked }));
  }
}
