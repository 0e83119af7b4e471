import type { Identity } from "../identity/principal.ts";
import { randomUUIDv7 } from "node:crypto";
import type { Clock, Secret } from "@devplat/base";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { FieldError, SvcError } from "../errors.ts";
import type { Client } from "../identity/client.ts";
import type { MadeWith } from "./made-with.ts";
import type { MintedTokens } from "./session-end.ts";
import type { SessionRecord, SessionStore } from "../storage/store.ts";
import { lifetimeOf } from "../tokens/duration.ts";
import { createToken, tokenHash, tokenStart } from "../credentials/token-format.ts";

export interface AdminTokensOptions {
  readonly sessions: SessionStore;
  readonly madeWith: Pick<MadeWith, "revoke">;
  readonly audit: AuditTrail;
  readonly clock: Clock;
  /** Longest life, in milliseconds. */
  readonly maxDurationMs: number;
}

/**
 * Administration tokens (`svcr_`): for programs that manage the service. One acts as the admin who made it, and is worth
 * nothing when that login is no admin any more. Every admin sees and revokes all of them.
 */
export class AdminTokens {
  readonly #options: AdminTokensOptions;

  constructor(options: AdminTokensOptions) {
    this.#options = options;
  }

  /**
   * Issues one; its value is in the answer, and nowhere else.
   *
   * @throws SvcError `invalid_fields`
   */
  async create(
    caller: Identity,
    client: Client,
    request: { readonly name: string; readonly duration: string },
  ): Promise<{ token: Secret; record: SessionRecord }> {
    const { sessions, audit, clock, maxDurationMs } = this.#options;
    const lifetime = lifetimeOf(request.duration, maxDurationMs);
    if (typeof lifetime === "string") throw new FieldError([{ pointer: "/duration", message: lifetime }]);
    const token = createToken("session");
    const now = clock.now();
    const record: SessionRecord = {
      id: randomUUIDv7(),
      kind: "administration",
      tokenHash: tokenHash(token.reveal()),
      tokenStart: tokenStart(token),
      userId: caller.userId,
      role: "admin",
      name: request.name,
      createdIp: client.address === "" ? undefined : client.address,
      userAgent: client.userAgent,
      createdAt: now,
      expiresAt: now + lifetime,
      lastSeenAt: undefined,
      mintedBy: caller.sessionId,
    };
    await sessions.insert(record);
    // Who ends a session with what it made must not miss one that it was making at that moment.
    if ((await sessions.get(caller.sessionId)) === undefined) {
      await sessions.delete(record.id);
      throw new SvcError("forbidden", "The session was ended meanwhile");
    }
    audit.record({
      action: "admin_token.created",
      outcome: "allowed",
      target: record.id,
      ...managementSource(caller, client),
      details: { name: record.name ?? "", expires_at: new Date(record.expiresAt).toISOString() },
    });
    return { token, record };
  }

  /** Those that are good now, newest first. */
  async list(): Promise<readonly SessionRecord[]> {
    const now = this.#options.clock.now();
    const all = await this.#options.sessions.list({ kind: "administration" });
    return all.filter(({ expiresAt }) => expiresAt > now);
  }

  /** @throws SvcError `not_found` */
  async get(id: string): Promise<SessionRecord> {
    const record = await this.#options.sessions.get(id);
    if (record?.kind !== "administration" || record.expiresAt <= this.#options.clock.now()) {
      throw new SvcError("not_found", "No administration token has this id");
    }
    return record;
  }

  /**
   * From here on it opens nothing, on any instance.
   *
   * @param tokens what becomes of the tokens that were made with it
   * @throws SvcError `not_found`
   */
  async revoke(caller: Identity, client: Client, id: string, tokens: MintedTokens = "keep"): Promise<void> {
    const record = await this.get(id);
    if (!(await this.#options.sessions.delete(id))) {
      throw new SvcError("not_found", "No administration token has this id");
    }
    const revoked = tokens === "revoke" ? await this.#options.madeWith.revoke(caller, client, id) : 0;
    this.#options.audit.record({
      action: "admin_token.revoked",
      outcome: "allowed",
      target: id,
      ...managementSource(caller, client),
      details: { name: record.name ?? "", tokens_revoked: revoked },
    });
  }
}
