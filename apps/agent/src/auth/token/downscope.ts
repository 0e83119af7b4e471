import { Secret } from "@devplat/base";
import { SecretStoreError, type TokenInfo, type VaultClient } from "@devplat/secret-store";
import { AgentError } from "../../errors.ts";

/** `store.policies` and `store.no_default_policy`: the maximum permissions of the daemon's token. */
export interface TokenScope {
  /** Empty: the policies of the login. */
  readonly policies: readonly string[];
  readonly noDefaultPolicy: boolean;
}

/** Longer than any store lets a token live, in seconds (68 years): the store cuts it to the greatest life that it allows. */
const AS_LONG_AS_ALLOWED_SECONDS = 2 ** 31 - 1;

export function narrows({ policies, noDefaultPolicy }: TokenScope): boolean {
  return policies.length > 0 || noDefaultPolicy;
}

/**
 * A child token with fewer policies (Vault, `auth/token/create`). A child ends with its parent, which is not renewed
 * any more, so the parent is first prolonged to the end of its greatest life.
 *
 * @throws AgentError `login_failed`
 */
export async function downscope(
  client: VaultClient,
  parent: Secret,
  info: TokenInfo,
  scope: TokenScope,
  signal: AbortSignal,
): Promise<Secret> {
  if (info.renewable) {
    await client
      .renewSelf({ token: parent, incrementSeconds: AS_LONG_AS_ALLOWED_SECONDS, signal })
      .catch(ignoreRefusal);
  }
  try {
    const response = await client.request({
      method: "POST",
      path: "auth/token/create",
      body: JSON.stringify({
        ...(scope.policies.length > 0 && { policies: scope.policies }),
        no_default_policy: scope.noDefaultPolicy,
        renewable: true,
        ...(info.creationTtlSeconds > 0 && { ttl: `${info.creationTtlSeconds}s` }),
      }),
      token: parent,
      signal,
    });
    return new Secret(response.get("auth").get("client_token").string());
  } catch (error) {
    if (!(error instanceof SecretStoreError) || !["denied", "refused"].includes(error.code)) throw error;
    throw new AgentError("login_failed", "the store gives no token with the policies of store.policies", {
      hint: "The login's own policies must hold them, and must allow to update auth/token/create.",
    });
  }
}

/** A parent that may not be prolonged is good for what it has. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof SecretStoreError) || !["denied", "refused"].includes(error.code)) throw error;
}
