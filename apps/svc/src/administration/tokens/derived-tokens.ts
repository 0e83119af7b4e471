import type { Actor } from "../../identity/principal.ts";
import type { Clock } from "@devplat/base";
import { actionEvent } from "../../identity/audit-source.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import type { SessionRecord, SessionStore } from "../../storage/store.ts";
import type { Tokens } from "./tokens.ts";

/** Whether tokens end with the session or administration token that made them. */
export type DerivedTokensAction = "revoke" | "keep";

export interface DerivedTokensParts {
  readonly sessions: Pick<SessionStore, "list" | "delete">;
  readonly tokens: Pick<Tokens, "revokeMintedBy" | "countMintedBy">;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/**
 * Tokens that were made with a session or an administration token: proxy and agent tokens, administration tokens, and the
 * tokens that were made with those.
 */
export class DerivedTokens {
  readonly #parts: DerivedTokensParts;

  constructor(parts: DerivedTokensParts) {
    this.#parts = parts;
  }

  /** Number of valid tokens that each session made, directly or through an administration token. Sessions without any are left out. */
  async count(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const made = await this.#administrationTokens();
    const descendantsOf = new Map(ids.map((id) => [id, descendants(id, made)]));
    const counted = await this.#parts.tokens.countMintedBy([
      ...new Set([...ids, ...[...descendantsOf.values()].flat()]),
    ]);
    const counts = new Map<string, number>();
    for (const [id, below] of descendantsOf) {
      const all = [id, ...below].reduce((sum, each) => sum + (counted.get(each) ?? 0), below.length);
      if (all > 0) counts.set(id, all);
    }
    return counts;
  }

  /**
   * Revokes all tokens that a session or an administration token made, directly or through another.
   * @param id of the session or token. It must have ended, or it could make another
   * @returns number of tokens that were valid
   */
  async revoke(actor: Actor, id: string): Promise<number> {
    const { sessions, tokens, audit } = this.#parts;
    let revoked = await tokens.revokeMintedBy(actor, id);
    const made = (await this.#administrationTokens()).filter(({ mintedBy }) => mintedBy === id);
    for (const record of made) {
      if (await sessions.delete(record.id)) {
        revoked++;
        audit.record(actionEvent(actor, "admin_token.revoked", record.id, { name: record.name ?? "" }));
      }
      revoked += await this.revoke(actor, record.id);
    }
    return revoked;
  }

  async #administrationTokens(): Promise<readonly SessionRecord[]> {
    const now = this.#parts.clock.now();
    const all = await this.#parts.sessions.list({ kind: "administration" });
    return all.filter(({ expiresAt }) => expiresAt > now);
  }
}

/** Ids of the administration tokens that were made with it, directly or by another of them. */
function descendants(id: string, made: readonly SessionRecord[]): readonly string[] {
  const children = made.filter(({ mintedBy }) => mintedBy === id).map((record) => record.id);
  return [...children, ...children.flatMap((child) => descendants(child, made))];
}
