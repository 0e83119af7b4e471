import { Secret } from "@devplat/base";
import { SecretStoreError, type VaultClient } from "@devplat/secret-store";
import { withoutChildPrefix } from "../../../auth/token/display-name.ts";
import { ForwardError } from "../errors/forward-error.ts";

/** A token of its own for one borrower. */
export interface ChildToken {
  readonly token: Secret;
  /** Names the token in the store. Its holder can revoke the token, not use it. */
  readonly accessor: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Policies that the store adds because of the identity. The request has no influence on them. */
  readonly identityPolicies: readonly string[];
  /** The token that it was made from, which can revoke it. */
  readonly parent: Secret;
}

/** A token to be revoked. */
export interface RevocableChild extends Pick<ChildToken, "token" | "accessor"> {
  /** Undefined for a child of an earlier run of the daemon. */
  readonly parent?: Secret;
}

export interface GrantRequest {
  /** Undefined: those of the parent. */
  readonly policies: readonly string[] | undefined;
  /** Life and greatest life, milliseconds. */
  readonly ttlMs: number;
}

/** Where child tokens come from. */
export interface ChildTokenStore {
  /** @throws ForwardError `token_not_lendable` | SecretStoreError when the store cannot be asked */
  grant(request: GrantRequest): Promise<ChildToken>;
  /** Whether the store still accepts a child. @throws SecretStoreError when the store cannot be asked */
  isLive(token: Secret): Promise<boolean>;
  /**
   * Ends a child. @returns whether it is certainly gone @throws SecretStoreError when the store cannot be asked
   */
  revoke(child: RevocableChild): Promise<boolean>;
}

/** The daemon's own token. */
export interface ParentToken {
  readonly token: Secret;
  readonly displayName: string;
}

export interface VaultChildTokensParts {
  readonly client: VaultClient;
  /** Undefined while nobody is signed in. */
  readonly parent: () => ParentToken | undefined;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** Time limit of the requests that end a child, in milliseconds, because a person or the end of the daemon waits for them. */
const REVOCATION_TIMEOUT_MS = 4000;

/** Child tokens of Vault (`auth/token/create`). */
export class VaultChildTokens implements ChildTokenStore {
  readonly #parts: VaultChildTokensParts;

  constructor(parts: VaultChildTokensParts) {
    this.#parts = parts;
  }

  async grant({ policies, ttlMs }: GrantRequest): Promise<ChildToken> {
    const { client, now } = this.#parts;
    const parent = this.#parts.parent();
    if (parent === undefined) throw notLendable("nobody is signed in on the workstation");
    const ttl = `${Math.ceil(ttlMs / 1000)}s`;
    const createdAt = now();
    try {
      const answer = await client.request({
        method: "POST",
        path: "auth/token/create",
        body: JSON.stringify({
          type: "service",
          ttl,
          // Nobody can renew it beyond this.
          explicit_max_ttl: ttl,
          renewable: false,
          // It has to be able to revoke itself.
          no_default_policy: false,
          ...(policies !== undefined && { policies }),
          display_name: withoutChildPrefix(parent.displayName),
        }),
        token: parent.token,
      });
      const auth = answer.get("auth");
      return {
        token: new Secret(auth.get("client_token").string()),
        parent: parent.token,
        accessor: auth.get("accessor").string(),
        createdAt,
        expiresAt: createdAt + auth.get("lease_duration").integer() * 1000,
        identityPolicies: auth.get("identity_policies").or<readonly string[]>([], (part) => part.strings()),
      };
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const reason =
        error.code === "denied"
          ? "the store does not allow the workstation's token to create child tokens"
          : "the store refuses a child token with these policies, or of this kind of token";
      throw notLendable(
        reason,
        "Allow update on auth/token/create, or set 'lend: own' for the remote.",
        error,
      );
    }
  }

  async isLive(token: Secret): Promise<boolean> {
    try {
      await this.#parts.client.lookupSelf({ token });
      return true;
    } catch (error) {
      if (isRefusal(error)) return false;
      throw error;
    }
  }

  async revoke(child: RevocableChild): Promise<boolean> {
    const { token, accessor } = child;
    const request = {
      method: "POST",
      mayBeEmpty: true,
      repeatable: true,
      timeoutMs: REVOCATION_TIMEOUT_MS,
    } as const;
    const { client } = this.#parts;
    try {
      await client.request({ ...request, path: "auth/token/revoke-self", token });
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
    // It is gone, or may not revoke itself.
    const parent = child.parent ?? this.#parts.parent()?.token;
    if (parent === undefined) return false;
    try {
      const body = JSON.stringify({ accessor });
      await client.request({ ...request, path: "auth/token/revoke-accessor", body, token: parent });
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The store does not know it, or does not tell.
      return error.code !== "denied" && error.code !== "unauthenticated";
    }
  }
}

/** The reason why a host gets no token; it is shown on both hosts. */
export function notLendable(reason: string, hint?: string, cause?: unknown): ForwardError {
  return new ForwardError("token_not_lendable", `No store token can be lent: ${reason}`, {
    ...(hint !== undefined && { hint }),
    cause,
  });
}

function isRefusal(error: unknown): error is SecretStoreError {
  return (
    error instanceof SecretStoreError &&
    ["denied", "unauthenticated", "refused", "not_found"].includes(error.code)
  );
}
