import type { ResponsePart } from "./response.ts";

/** The last time that JavaScript can tell (ECMA-262, "Time Values and Time Range"), in milliseconds. */
const MAX_TIME_MS = 8.64e15;

/** What `auth/token/lookup-self` tells of a token. */
export interface TokenInfo {
  /** Who it stands for; undefined for tokens without an entity (root, bare children). */
  readonly entityId: string | undefined;
  readonly displayName: string;
  readonly policies: readonly string[];
  /** Remaining life in seconds; undefined for a token that does not end. */
  readonly ttlSeconds: number | undefined;
  /** The life that it was made with, in seconds; 0 for one that does not end. */
  readonly creationTtlSeconds: number;
  /** Milliseconds since the epoch; undefined for a token that does not end. */
  readonly expiresAt: number | undefined;
  readonly renewable: boolean;
}

/** @param now milliseconds since the epoch, where the answer gives only the remaining life (batch tokens) */
export function readTokenInfo(data: ResponsePart, now: number): TokenInfo {
  const ttl = data.get("ttl").integer();
  const creationTtlSeconds = data.get("creation_ttl").integer();
  const ends = ttl > 0 || creationTtlSeconds > 0;
  return {
    entityId: data.get("entity_id").or("", (part) => part.string()) || undefined,
    displayName: data.get("display_name").or("", (part) => part.string()),
    policies: data.get("policies").or<readonly string[]>([], (part) => part.strings()),
    ttlSeconds: ends ? ttl : undefined,
    creationTtlSeconds,
    expiresAt: ends
      ? data.get("expire_time").or(Math.min(now + ttl * 1000, MAX_TIME_MS), (part) => part.time())
      : undefined,
    renewable: data.get("renewable").or(false, (part) => part.boolean()),
  };
}
