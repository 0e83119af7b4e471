import { hash } from "node:crypto";
import type { Clock } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { RepositoryId } from "./repository-id.ts";

/** Maximum number of remembered authorizations, and of refusals. The oldest are removed first, which costs a probe. */
const MAX_ENTRIES = 100_000;
/**
 * Milliseconds after an authorization in which a probe may renew it. Negotiations over a slow link and lazy fetches of a
 * partial clone have no `ls-refs`. Together they cost one probe in `grantSeconds`, not one for each fetch.
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
  return hash("sha256", text, "base64url") as AuthorizationKey;
}

/**
 * Decisions of the code host, kept in memory for a short time (spec/svc.md section 2.1). The age of a decision counts
 * from its request to the code host. A refusal of any request that reads deletes it.
 */
export class AuthorizationCache {
  readonly #lifeMs: number;
  readonly #clock: Clock;
  /** Time when the request of the last authorization was sent. */
  readonly #sentAt = new BoundedMap<AuthorizationKey, number>({ max: MAX_ENTRIES });
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

  /** Time when the request of the remembered authorization was sent; undefined: no current one is remembered. */
  find(key: AuthorizationKey): number | undefined {
    const sentAt = this.#sentAt.peek(key);
    return sentAt !== undefined && this.isCurrent(key, sentAt) ? sentAt : undefined;
  }

  /** Whether cached data may be sent after a decision whose request was sent at that time. With 0 seconds: never. */
  isCurrent(key: AuthorizationKey, sentAt: number): boolean {
    return this.#clock.monotonic() - sentAt < this.#lifeMs && !this.#refusedSince(key, sentAt);
  }

  /** Remembers an authorization. One whose request was sent before the last refusal is not remembered. */
  record(key: AuthorizationKey, sentAt: number): void {
    if (this.#lifeMs === 0 || this.#refusedSince(key, sentAt)) return;
    this.#sentAt.set(key, Math.max(sentAt, this.#sentAt.peek(key) ?? sentAt));
  }

  /** Remembers an authorization if one was remembered in the last ten minutes and not deleted since. */
  renew(key: AuthorizationKey, sentAt: number): void {
    const before = this.#sentAt.peek(key);
    if (before !== undefined && sentAt - before <= RENEWABLE_MS) this.record(key, sentAt);
  }

  /** Deletes the authorization after a refusal of a request that reads. Decisions of running requests do not count. */
  refuse(key: AuthorizationKey): void {
    this.#sentAt.delete(key);
    this.#refusedAt.set(key, this.#clock.monotonic());
  }

  /** Deletes the authorization. Decisions of running requests count. */
  forget(key: AuthorizationKey): void {
    this.#sentAt.delete(key);
  }

  #refusedSince(key: AuthorizationKey, time: number): boolean {
    const refusedAt = this.#refusedAt.peek(key);
    return refusedAt !== undefined && refusedAt >= time;
  }
}
