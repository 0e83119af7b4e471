import type { Identity } from "../identity/principal.ts";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import { SvcError } from "../errors.ts";
import type { SessionRecord, SessionStore } from "../storage/store.ts";
import { isWellFormed, tokenHash } from "../credentials/token-format.ts";
import type { Client } from "../identity/client.ts";
import type { MadeWith } from "./made-with.ts";
import type { Sessions } from "../identity/login/sessions.ts";

/** What becomes of the tokens that were made with a session or an administration token, when that ends. */
export type MintedTokens = "revoke" | "keep";

export interface SessionEndOptions {
  readonly sessions: Sessions;
  readonly store: Pick<SessionStore, "findByHash" | "delete">;
  readonly madeWith: Pick<MadeWith, "revoke">;
  readonly audit: AuditTrail;
}

/** Ends sessions, and what was made with them, for whoever may. */
export class SessionEnd {
  readonly #options: SessionEndOptions;

  constructor(options: SessionEndOptions) {
    this.#options = options;
  }

  /**
   * Ends one of the caller's sessions, or as an admin anybody's.
   *
   * @param tokens default `revoke` for the session of a program, because who ends that of a lost machine means what is on it,
   *   too; `keep` for a browser's, whose tokens are elsewhere
   * @returns the session, and how many tokens were revoked
   * @throws SvcError `not_found`
   */
  async end(
    caller: Identity,
    client: Client,
    id: string,
    tokens?: MintedTokens,
  ): Promise<{ readonly record: SessionRecord; readonly revoked: number }> {
    // The session first: it could make another token else.
    const record = await this.#options.sessions.revoke(caller, id);
    const wanted = tokens ?? (record.name === undefined ? "keep" : "revoke");
    const revoked = wanted === "revoke" ? await this.#options.madeWith.revoke(caller, client, record.id) : 0;
    this.#note(record, caller, client, revoked);
    return { record, revoked };
  }

  /**
   * Ends a session or administration token that leaked, with every token that was made with it, for whoever found it:
   * having it is the right to end it.
   *
   * @throws SvcError `not_found`: never issued, or ended before
   */
  async endByValue(caller: Identity, client: Client, text: string): Promise<void> {
    const { store, madeWith } = this.#options;
    const record = isWellFormed(text) ? await store.findByHash(tokenHash(text)) : undefined;
    if (record === undefined) throw new SvcError("not_found", "No token has this value");
    const ended = await store.delete(record.id);
    const revoked = await madeWith.revoke(caller, client, record.id);
    // Of two who end it at once, one did it.
    if (ended) this.#note(record, caller, client, revoked);
  }

  #note(record: SessionRecord, caller: Identity, client: Client, revoked: number): void {
    this.#options.audit.record({
      action: record.kind === "administration" ? "admin_token.revoked" : "session.ended",
      outcome: "allowed",
      target: record.id,
      ...managementSource(caller, client),
      details: { ...(record.name === undefined ? {} : { name: record.name }), tokens_revoked: revoked },
    });
  }
}
