import type { Secret } from "@devplat/base";
import type { SignIn } from "../../auth/sign-in.ts";
import type { DaemonView } from "../../status.ts";
import type { RemoteEntry } from "../forwards/file/remote-entry.ts";
import { borrowerOf, lendSettings, type TokenLender } from "../forwards/token-lender.ts";
import { ForwardError } from "../forwards/errors/forward-error.ts";
import { PROBLEMS, type Problem } from "../http-api/problem.ts";
import type { TokenHandouts } from "./token-handouts.ts";

/** A token for a borrower. */
export interface PeerToken {
  readonly token: Secret;
  /** ISO 8601; null for a token without end. */
  readonly expiresAt: string | null;
}

/** The tokens that a peer socket hands out. */
export interface PeerTokens {
  /** @throws SecretStoreError when the store cannot be asked */
  lend(): Promise<PeerToken | Problem>;
}

/** Hands the daemon's own token out. */
export function ownTokens(
  view: DaemonView,
  signIn: Pick<SignIn, "token">,
  handouts: TokenHandouts,
): PeerTokens {
  return {
    lend: async () => {
      const { authenticated, auth } = view.status();
      if (!authenticated) return PROBLEMS.notSignedIn;
      const token = signIn.token();
      if (token === undefined) return PROBLEMS.noToken;
      handouts.note();
      return { token, expiresAt: auth.expires_at };
    },
  };
}

/** Lends to one remote host. @param lender undefined where the store works without a token */
export function tokensFor(entry: RemoteEntry, lender: TokenLender | undefined): PeerTokens {
  return {
    lend: async () => {
      if (lender === undefined) return PROBLEMS.noToken;
      try {
        const { token, expiresAt } = await lender.lend(borrowerOf(entry), lendSettings(entry));
        return { token, expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString() };
      } catch (error) {
        if (!(error instanceof ForwardError) || error.code !== "token_not_lendable") throw error;
        return {
          detail: `${error.message}.`,
          code: "token_not_lendable",
          ...(error.hint !== undefined && { hint: error.hint }),
        };
      }
    },
  };
}
