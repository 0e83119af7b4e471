import { lentTokensPath } from "./forward-places.ts";
import type { StoreParts } from "./store.ts";
import type { Host } from "../host.ts";
import type { StateFile } from "../sync/state.ts";
import { ChildJournal } from "../surfaces/forwards/tokens/child-journal.ts";
import { VaultChildTokens } from "../surfaces/forwards/tokens/child-token-store.ts";
import { ChildTokens } from "../surfaces/forwards/tokens/child-tokens.ts";
import { TokenLender } from "../surfaces/forwards/tokens/token-lender.ts";

/** The lender of a daemon. */
export interface Lending {
  readonly lender: TokenLender;
}

/** Builds the lender of store tokens. Only a daemon that lends loads this file. */
export function assembleLending(
  { places, clock, logger }: Host,
  { tokens, state }: Pick<StoreParts, "tokens"> & { readonly state: StateFile },
): Lending {
  const children =
    tokens &&
    new ChildTokens({
      store: new VaultChildTokens({
        client: tokens.client,
        parent: () => {
          const token = tokens.signIn.token();
          const { info } = tokens.signIn.state();
          return token && info && { token, displayName: info.displayName };
        },
        now: () => clock.now(),
      }),
      journal: new ChildJournal({ path: lentTokensPath(places), key: state.key, logger }),
      own: () => {
        const token = tokens.signIn.token();
        return token && { token, expiresAt: tokens.signIn.state().info?.expiresAt };
      },
      clock,
      logger,
    });
  return { lender: new TokenLender({ children, ask: undefined, clock, logger }) };
}
