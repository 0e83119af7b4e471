import type { Clock } from "@devplat/base";
import type { LentToken } from "./child-tokens.ts";
import {
  PEER_SOCKET_BORROWER,
  type LoanSettings,
  type LoanStatus,
  type TokenLender,
} from "./token-lender.ts";

export interface PeerSocketLoanParts {
  readonly lender: Pick<TokenLender, "lend" | "revoke" | "status" | "consent" | "stopped">;
  readonly settings: LoanSettings;
  readonly clock: Clock;
}

/**
 * The loan over the peer socket that the user forwards. The daemon does not see when that forward ends, so the loan ends
 * when nobody has asked for a token for as long as a token lives.
 */
export class PeerSocketLoan {
  readonly #parts: PeerSocketLoanParts;
  #idle = new AbortController();

  constructor(parts: PeerSocketLoanParts) {
    this.#parts = parts;
  }

  /** @throws ForwardError `token_not_lendable` | `consent_pending` | SecretStoreError when the store cannot be asked */
  async lend(): Promise<LentToken> {
    const { lender, settings, clock } = this.#parts;
    this.#idle.abort();
    this.#idle = new AbortController();
    clock.sleep(settings.ttlMs, AbortSignal.any([this.#idle.signal, lender.stopped])).then(
      () => this.revoke(),
      () => undefined,
    );
    return await lender.lend(PEER_SOCKET_BORROWER, settings);
  }

  /** The user's decision. @returns false if the user was not asked */
  consent(allowed: boolean): boolean {
    return this.#parts.lender.consent(PEER_SOCKET_BORROWER, allowed);
  }

  async revoke(): Promise<void> {
    await this.#parts.lender.revoke(PEER_SOCKET_BORROWER);
  }

  status(): LoanStatus {
    const { lender, settings } = this.#parts;
    return lender.status(PEER_SOCKET_BORROWER, settings);
  }
}
