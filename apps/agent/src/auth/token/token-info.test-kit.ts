import type { TokenInfo } from "@devplat/secret-store";

/** Facts of a token without an entity, policies and an end. @param facts that differ */
export function tokenInfo(facts: Partial<TokenInfo> = {}): TokenInfo {
  return {
    entityId: undefined,
    displayName: "token",
    policies: [],
    identityPolicies: [],
    ttlSeconds: undefined,
    creationTtlSeconds: 0,
    expiresAt: undefined,
    renewable: false,
    ...facts,
  };
}
