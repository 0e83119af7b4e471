import type { AuditTrail } from "../../audit/audit-event.ts";
import { isWellFormed, tokenHash } from "../../credentials/token-format.ts";
import { SvcError } from "../../errors.ts";
import type { Accounts, AccountState } from "../../identity/accounts/accounts.ts";
import { actionEvent } from "../../identity/audit-source.ts";
import type { ListedSession, Sessions } from "../../identity/login/sessions.ts";
import type { Actor } from "../../identity/principal.ts";
import type { SessionRecord, SessionStore } from "../../storage/store.ts";
import type { DerivedTokens, DerivedTokensAction } from "../tokens/derived-tokens.ts";
import { requireAdmin, requirePerson } from "../permission.ts";

export interface SessionUseCasesParts {
  readonly sessions: Sessions;
  readonly store: Pick<SessionStore, "findByHash" | "delete">;
  readonly derived: DerivedTokens;
  readonly accounts: Pick<Accounts, "state" | "disconnect">;
  readonly audit: AuditTrail;
}

/** The sessions and the code-host account of the actor, and for admins the sessions of all. */
export class SessionUseCases {
  readonly #parts: SessionUseCasesParts;

  constructor(parts: SessionUseCasesParts) {
    this.#parts = parts;
  }

  /** Running sessions, newest first. @param everybody for admins @throws SvcError `forbidden` */
  async list(actor: Actor, everybody = false): Promise<readonly ListedSession[]> {
    if (everybody) requireAdmin(actor);
    return this.#parts.sessions.list(actor, everybody);
  }

  /** Number of valid tokens that were made with each session, by its id. Sessions without any are left out. */
  async tokenCounts(sessions: readonly ListedSession[]): Promise<ReadonlyMap<string, number>> {
    return this.#parts.derived.count(sessions.map(({ record }) => record.id));
  }

  /**
   * Ends one of the actor's sessions, or as an admin anybody's.
   *
   * @param tokens default `revoke` for the session of a program, because ending that of a lost machine means the tokens on
   *   it, too; `keep` for a browser's, whose tokens are elsewhere
   * @returns how many tokens were revoked
   * @throws SvcError `forbidden`, `not_found`
   */
  async end(actor: Actor, id: string, tokens?: DerivedTokensAction): Promise<number> {
    if (id !== actor.sessionId) requirePerson(actor);
    // The session goes first, or it could make another token.
    const record = await this.#parts.sessions.revoke(actor, id);
    const wanted = tokens ?? (record.name === undefined ? "keep" : "revoke");
    const revoked = wanted === "revoke" ? await this.#parts.derived.revoke(actor, id) : 0;
    this.#recordEnd(actor, record, revoked);
    return revoked;
  }

  /**
   * Ends a leaked session or administration token by its value, with every token that was made with it, for anybody who
   * has it.
   *
   * @throws SvcError `not_found`: never issued, or ended before
   */
  async endByValue(actor: Actor, text: string): Promise<void> {
    const { store, derived } = this.#parts;
    const record = isWellFormed(text) ? await store.findByHash(tokenHash(text)) : undefined;
    if (record === undefined) throw new SvcError("not_found", "No token has this value");
    const ended = await store.delete(record.id);
    const revoked = await derived.revoke(actor, record.id);
    // Only one of two concurrent ends is recorded.
    if (ended) this.#recordEnd(actor, record, revoked);
  }

  /** Ends the session that makes the request. */
  async logOut(actor: Actor): Promise<void> {
    await this.#parts.sessions.end(actor.sessionId);
    this.#parts.audit.record(actionEvent(actor, "session.ended", actor.sessionId));
  }

  /** Ends the session that a browser had before its user signed in again. @param token of the earlier session */
  async endEarlier(actor: Actor, token: string): Promise<void> {
    const ended = await this.#parts.sessions.endByToken(token);
    if (ended !== undefined) this.#parts.audit.record(actionEvent(actor, "session.ended", ended.id));
  }

  /** State of the actor's account at the code host. */
  async accountState(actor: Actor): Promise<AccountState> {
    return this.#parts.accounts.state(actor.userId);
  }

  /** Forgets the actor's credential at the code host. False: there was none. @throws SvcError `forbidden` */
  async disconnectAccount(actor: Actor): Promise<boolean> {
    requirePerson(actor);
    const removed = await this.#parts.accounts.disconnect(actor.userId);
    if (removed) this.#parts.audit.record(actionEvent(actor, "account.disconnected", actor.login));
    return removed;
  }

  #recordEnd(actor: Actor, { id, kind, name }: SessionRecord, revoked: number): void {
    const action = kind === "administration" ? "admin_token.revoked" : "session.ended";
    const details = { ...(name === undefined ? {} : { name }), tokens_revoked: revoked };
    this.#parts.audit.record(actionEvent(actor, action, id, details));
  }
}
