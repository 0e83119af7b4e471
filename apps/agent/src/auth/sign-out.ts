import type { Logger, Secret } from "@devplat/base";
import type { VaultClient } from "@devplat/secret-store";
import { tokenDigest } from "./token/denied-tokens.ts";
import type { IdentityPin } from "./token/identity-pin.ts";
import type { SignIn } from "./sign-in.ts";
import type { TokenFile } from "./token/token-file.ts";

/** Time limit of the request to the store, in milliseconds, because a page waits for it. A token that is not revoked expires. */
const SIGN_OUT_LIMIT_MS = 4000;

export interface SignOutParts {
  readonly tokenFile: Pick<TokenFile, "read" | "remove">;
  readonly pin: Pick<IdentityPin, "read">;
  readonly client: Pick<VaultClient, "revokeSelf">;
}

export interface RemovedToken {
  /** Whether there was a token file. */
  readonly removed: boolean;
  /** The token that was in it, if it could be read. */
  readonly token: Secret | undefined;
  /** It comes from a login of this program, so that it may be revoked by us. */
  readonly ownLogin: boolean;
}

/** Removes the token file. A running daemon notices the removal and forgets the token too. */
export async function removeToken({
  tokenFile,
  pin,
}: Pick<SignOutParts, "tokenFile" | "pin">): Promise<RemovedToken> {
  // One that may not be read is removed all the same.
  const token = await tokenFile.read().catch(() => undefined);
  const own = await pin.read();
  const removed = await tokenFile.remove();
  const ownLogin = token !== undefined && own?.own_login === true && own.token === tokenDigest(token);
  return { removed, token, ownLogin };
}

/**
 * Signs the running daemon out: the token file goes, the token is forgotten, and ended in the store if it comes from a
 * login of this program. What a peer or the environment offers is taken up afterwards as ever.
 */
export async function signOut(
  parts: SignOutParts & { readonly signIn: Pick<SignIn, "ensure">; readonly logger: Logger },
): Promise<void> {
  const { token, ownLogin } = await removeToken(parts);
  const signal = AbortSignal.timeout(SIGN_OUT_LIMIT_MS);
  // The sign-in notices the removal of the file. Its error is expected.
  await parts.signIn.ensure(signal).catch(() => undefined);
  if (token === undefined || !ownLogin) return;
  await parts.client.revokeSelf({ token, signal }).catch((error: unknown) => {
    parts.logger.warn({ err: error }, "the token could not be revoked; it ends by itself");
  });
}
