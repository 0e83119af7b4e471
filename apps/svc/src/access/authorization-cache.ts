import { createHash } from "node:crypto";
import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "./repository-id.ts";

/** Maximum number of remembered authorizations, and of refusals. The oldest go first, which costs a probe upstream. */
const MAX_ENTRIES = 100_000;
/**
 * Milliseconds after an authorization in which a probe may renew it. A negotiation over a slow link, and the lazy
 * fetches of a partial clone, come without an `ls-refs` of their own: they cost one probe each `grantSeconds`, not one
 * each.
 */
const RENEWABLE_MS = 600_000;

/** Names one credential's access to one repository. Holds a digest, never the credential. */
export type AuthorizationKey = string & { readonly __authorization: unique symbol };

/**
 * The key of an authorization: SHA-256 of the exact `Authorization` that went upstream, the code host and the
 * repository. The parts are length-delimited by JSON, so that no two different triples give one text.
 */
export function authorizationKey(
  authorization: string | undefined,
  hostUrl: string,
  id: RepositoryId,
): AuthorizationKey {
  const text = JSON.stringify([authorization ?? null, hostUrl, id.owner, id.name]);
  return createHash("sha256").update(text).digest("base64url") as AuthorizationKey;
}

/**
 * Decisions of the code host, for a short time and in memory only (spec/svc.md section 2.1). A decision is as old as
 * the request to the code host behind it. A refusal of any request that reads deletes it.
 */
export class AuthorizationCache {
  readonly #lifeMs: number;
  readonly #clock: Clock;
  /** When the request behind the last authorization was sent. */
  readonly #askedAt = new BoundedMap<AuthorizationKey, number>({ max: MAX_ENTRIES });
  readonly #refusedAt = new BoundedMap<AuthorizationKey, number>({ max: MAX_ENTRIES });

  /** @param grantSeconds 0 = an authorization is never remembered */
  constructor(grantSeconds: number, clock: Clock) {
    this.#lifeMs = grantSeconds * 1000;
    this.#clock = clock;
  }

  /** The time to hand to the methods below: taken before a request to the code host is sent. */
  now(): number {
    return this.#clock.monotonic();
  }

  /** When the request behind the remembered authorization was sent; undefined: none is remembered that still counts. */
  find(key: AuthorizationKey): number | undefined {
    const askedAt = this.#askedAt.peek(key);
    return askedAt !== undefined && this.isCurrent(key, askedAt) ? askedAt : undefined;
  }

  /** Whether cached data may be sent on a decision whose request was sent then. With 0 seconds: never. */
  isCurrent(key: AuthorizationKey, askedAt: number): boolean {
    return this.#clock.monotonic() - askedAt < this.#lifeMs && !this.#refusedSince(key, askedAt);
  }

  /** Remembers an authorization. One whose request was sent before the last refusal is not remembered. */
  record(key: AuthorizationKey, askedAt: number): void {
    if (this.#lifeMs === 0 || this.#refusedSince(key, askedAt)) return;
    this.#askedAt.set(key, Math.max(askedAt, this.#askedAt.peek(key) ?? askedAt));
  }

  /** Remembers an authorization if one was remembered in the last ten minutes and not deleted since. */
  renew(key: AuthorizationKey, askedAt: number): void {
    const before = this.#askedAt.peek(key);
    if (before !== undefined && askedAt - before <= RENEWABLE_MS) this.record(key, askedAt);
  }

  /** Deletes the authorization after a refusal of a request that reads: decisions that are on their way do not count. */
  refuse(key: AuthorizationKey): void {
    this.#askedAt.delete(key);
    this.#refusedAt.set(key, this.#clock.monotonic());
  }

  /** Deletes the authorization; a decision that is on its way counts. */
  forget(key: AuthorizationKey): void {
    this.#askedAt.delete(key);
  }

  #refusedSince(key: AuthorizationKey, time: number): boolean {
    const refusedAt = this.#refusedAt.peek(key);
    return refusedAt !== undefined && refusedAt >= time;
  }
}
