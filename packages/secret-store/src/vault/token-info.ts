import type { ResponsePart } from "./response.ts";

/** Last time that a Date can hold, in milliseconds (ECMA-262, "Time Values and Time Range"). */
const MAX_TIME_MS = 8.64e15;

/** Data of a token from `auth/token/lookup-self`. */
export interface TokenInfo {
  /** Entity of the token. Undefined for tokens without an entity (root, bare children). */
  readonly entityId: string | undefined;
  readonly displayName: string;
  readonly policies: readonly string[];
  /** Policies of the entity and of its groups, which Vault adds to every token of the entity. */
  readonly identityPolicies: readonly string[];
  /** Remaining time to live in seconds. Undefined for a token that does not end. */
  readonly ttlSeconds: number | undefined;
  /** Time to live at creation, in seconds. 0 for a token that does not end. */
  readonly creationTtlSeconds: number;
  /** End of the token in milliseconds since the epoch. Undefined for a token that does not end. */
  readonly expiresAt: number | undefined;
  readonly renewable: boolean;
}

/** @param now milliseconds since the epoch, for responses that have only the remaining time to live (batch tokens) */
export function readTokenInfo(data: ResponsePart, now: number): TokenInfo {
  const ttl = data.get("ttl").integer();
  const creationTtlSeconds = data.get("creation_ttl").integer();
  const ends = ttl > 0 || creationTtlSeconds > 0;
  return {
    entityId: data.get("entity_id").or("", (part) => part.string()) || undefined,
    displayName: data.get("display_name").or("", (part) => part.string()),
    policies: data.get("policies").or<readonly string[]>([], (part) => part.strings()),
    identityPolicies: data.get("identity_policies").or<readonly string[]>([], (part) => part.strings()),
    ttlSeconds: ends ? ttl : undefined,
    creationTtlSeconds,
    expiresAt: ends
      ? data.get("expire_time").or(Math.min(now + ttl * 1000, MAX_TIME_MS), (part) => part.time())
      : undefined,
    renewable: data.get("renewable").or(false, (part) => part.boolean()),
  };
}
