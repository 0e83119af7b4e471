import { lentTokensPath } from "./forward-places.ts";
import type { StoreParts } from "./store.ts";
import { withoutChildPrefix } from "../auth/token/display-name.ts";
import type { TokenSignIn } from "../auth/sign-in.ts";
import { BRAND } from "../brand.ts";
import { systemDesktop } from "../desktop/desktop.ts";
import type { Notification } from "../desktop/notification.ts";
import type { Host } from "../host.ts";
import type { StateFile } from "../sync/state.ts";
import { ChildJournal } from "../surfaces/forwards/tokens/child-journal.ts";
import { VaultChildTokens } from "../surfaces/forwards/tokens/child-token-store.ts";
import { ChildTokens } from "../surfaces/forwards/tokens/child-tokens.ts";
import { PEER_SOCKET_BORROWER, TokenLender } from "../surfaces/forwards/tokens/token-lender.ts";
import type { Surface } from "../surfaces/surface.ts";

export interface LendingParts extends Pick<StoreParts, "tokens"> {
  readonly state: StateFile;
  /** Address of the web UI once it is there; undefined where there is none. */
  readonly webUrl: (() => string) | undefined;
  /** Commands can reach the daemon by its API socket. */
  readonly hasApi: boolean;
}

/** The lender of a daemon. */
export interface Lending {
  readonly lender: TokenLender;
  /** Recovers before the surfaces serve, and revokes when they stop. */
  readonly surface: Surface;
}

/** Builds the lender of store tokens; a store without tokens has none to lend. Only a daemon that lends loads this file. */
export function assembleLending(host: Host, parts: LendingParts): Lending {
  const { clock, logger, environment } = host;
  const { tokens, webUrl, hasApi } = parts;
  const desktop = systemDesktop(environment);
  const lender = new TokenLender({
    children: tokens && childTokens(host, tokens, parts.state),
    ask:
      webUrl === undefined && !hasApi
        ? undefined
        : (borrower) => {
            // Page and status ask as well, so that a desktop without notifications loses nothing.
            void desktop.raise(question(borrower, webUrl?.())).then((outcome) => {
              if (outcome !== "done")
                logger.warn({ borrower, outcome }, "the notification could not be raised");
            });
          },
    clock,
    logger,
  });
  if (tokens !== undefined) followSignIn(lender, tokens.signIn);
  return { lender, surface: lendingSurface(lender) };
}

function lendingSurface(lender: TokenLender): Surface {
  return {
    start: async () => lender.start(),
    reconcile: async () => undefined,
    status: () => ({}),
    stop: () => lender.stop(),
  };
}

function childTokens(
  host: Host,
  { client, signIn }: NonNullable<StoreParts["tokens"]>,
  state: StateFile,
): ChildTokens {
  const { clock, logger } = host;
  return new ChildTokens({
    store: new VaultChildTokens({
      client,
      parent: () => {
        const token = signIn.token();
        return token && { token, displayName: signIn.state().info?.displayName ?? "" };
      },
      now: () => clock.now(),
    }),
    journal: new ChildJournal({ path: lentTokensPath(host.places), key: state.key, logger }),
    own: () => {
      const token = signIn.token();
      return token && { token, expiresAt: signIn.state().info?.expiresAt };
    },
    identityPolicies: () => signIn.state().info?.identityPolicies ?? [],
    clock,
    logger,
  });
}

/** Lent tokens belong to the signed-in user: they end with the sign-in, and when another user signs in. */
function followSignIn(lender: TokenLender, signIn: TokenSignIn): void {
  const userOf = (): string | undefined => {
    const { info } = signIn.state();
    return info && (info.entityId ?? withoutChildPrefix(info.displayName));
  };
  let user = userOf();
  signIn.onChange(() => {
    const next = userOf();
    const isSame = next !== undefined && (user === undefined || next === user);
    user = next;
    void (isSame ? lender.revokeLeft() : lender.revokeAll());
    if (isSame) void lender.recheck();
  });
}

/** @param webUrl undefined without a web UI: a command is named instead of a page */
function question(borrower: string, webUrl: string | undefined): Notification {
  const isPeerSocket = borrower === PEER_SOCKET_BORROWER;
  const commands = isPeerSocket ? "peer-socket allow|refuse" : `ssh allow|refuse ${borrower}`;
  const page = isPeerSocket ? "/ui/peer-socket/" : `/ui/remotes/${encodeURIComponent(borrower)}/`;
  return {
    level: "attention",
    title: isPeerSocket
      ? "A host asks for your store token, over the forwarded peer socket"
      : `${borrower} asks for your store token`,
    ...(webUrl === undefined
      ? { body: `Allow or refuse it: ${BRAND.command} ${commands}` }
      : { body: "Allow or refuse it on this page:", actionUrl: `${webUrl}${page}` }),
  };
}
