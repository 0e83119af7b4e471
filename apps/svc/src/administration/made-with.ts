import type { Identity } from "../identity/principal.ts";
import type { Clock } from "@devplat/base";
import { managementSource } from "../identity/audit-source.ts";
import type { AuditTrail } from "../audit/audit-event.ts";
import type { SessionRecord, SessionStore } from "../storage/store.ts";
import type { TokenMint } from "./token-mint.ts";
import type { Client } from "../identity/client.ts";

export interface MadeWithOptions {
  readonly sessions: Pick<SessionStore, "list" | "delete">;
  readonly mint: Pick<TokenMint, "revokeMintedBy" | "countMintedBy">;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/**
 * What was made with a session or an administration token: proxy and agent tokens, administration tokens, and in turn what
 * was made with those.
 */
export class MadeWith {
  readonly #options: MadeWithOptions;

  constructor(options: MadeWithOptions) {
    this.#options = options;
  }

  /** How many tokens of every kind that are good now were made with each; those with none are left out. */
  async count(ids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const made = await this.#administrationTokens();
    const within = new Map(ids.map((id) => [id, descendants(id, made)]));
    const counted = await this.#options.mint.countMintedBy([
      ...new Set([...ids, ...[...within.values()].flat()]),
    ]);
    const counts = new Map<string, number>();
    for (const [id, below] of within) {
      const all = [id, ...below].reduce((sum, each) => sum + (counted.get(each) ?? 0), below.length);
      if (all > 0) counts.set(id, all);
    }
    return counts;
  }

  /** Revokes all of it. To be called when the session is over: it could make another else. @returns how many were good */
  async revoke(caller: Identity, client: Client, id: string): Promise<number> {
    const { sessions, mint, audit } = this.#options;
    let revoked = await mint.revokeMintedBy(caller, client, id);
    const made = (await this.#administrationTokens()).filter(({ mintedBy }) => mintedBy === id);
    for (const record of made) {
      if (await sessions.delete(record.id)) {
        revoked++;
        audit.record({
          action: "admin_token.revoked",
          outcome: "allowed",
          target: record.id,
          ...managementSource(caller, client),
          details: { name: record.name ?? "" },
        });
      }
      revoked += await this.revoke(caller, client, record.id);
    }
    return revoked;
  }

  async #administrationTokens(): Promise<readonly SessionRecord[]> {
    const now = this.#options.clock.now();
    const all = await this.#options.sessions.list({ kind: "administration" });
    return all.filter(({ expiresAt }) => expiresAt > now);
  }
}

/** Ids of the administration tokens that were made with it, and with those. */
function descendants(id: string, made: readonly SessionRecord[]): readonly string[] {
  const children = made.filter(({ mintedBy }) => mintedBy === id).map((record) => record.id);
  return [...children, ...children.flatMap((child) => descendants(child, made))];
}
