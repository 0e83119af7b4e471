import type { LentTokensView } from "../../../lent-tokens-view.ts";
import type { LoanStatus } from "./token-lender.ts";

/** The document about the tokens of one borrower. */
export function lentTokensDocument({ tokens, addedPolicies, problem, asking }: LoanStatus): LentTokensView {
  return {
    lent: tokens.map(({ createdAt, expiresAt, lastUsedAt, handouts }) => ({
      created_at: new Date(createdAt).toISOString(),
      expires_at: new Date(expiresAt).toISOString(),
      last_used_at: lastUsedAt === undefined ? null : new Date(lastUsedAt).toISOString(),
      handouts,
    })),
    added_policies: [...addedPolicies],
    problem: problem ?? null,
    asking,
  };
}
