import { createHash } from "node:crypto";
import type { Clock } from "@devplat/base";
import type { RepositoryId } from "./repository-id.ts";

/** Grants and refusals that are remembered at most; the oldest go first, which costs a question upstream. */
const MAX_ENTRIES = 100_000;

/** Names one credential's access to one repository. Holds a digest, never the credential. */
export type GrantKey = string & { readonly __grant: unique symbol };

/**
 * The key of a grant: SHA-256 of the exact `Authorization` that went upstream, the code host and the repository.
 * The parts are length-delimited by JSON, so that no two different triples give one text.
 */
export function grantKey(authorization: string | undefined, hostUrl: string, id: RepositoryId): GrantKey {
  const text = JSON.stringify([authorization ?? null, hostUrl, id.owner, id.name]);
  return createHash("sha256").update(text).digest("base64url") as GrantKey;
}

/**
 * What the code host said of credentials, for a short time and in memory only (spec/svc.md section 2.1). A yes to an
 * `ls-refs` is a grant for `grantSeconds`; a refusal of any smart git request ends it at once.
 */
export class Grants {
  readonly #lifeMs: number;
  readonly #clock: Clock;
  readonly #expiry = new Map<GrantKey, number>();
  readonly #refusedAt = new Map<GrantKey, number>();

  /** @param grantSeconds 0 = a yes is never kept */
  constructor(grantSeconds: number, clock: Clock) {
    this.#lifeMs = grantSeconds * 1000;
    this.#clock = clock;
  }

  has(key: GrantKey): boolean {
    const expiry = this.#expiry.get(key);
    if (expiry === undefined) return false;
    if (expiry > this.#clock.monotonic()) return true;
    this.#expiry.delete(key);
    return false;
  }

  /** The time to hand to {@link allow}: taken before the question is sent. */
  now(): number {
    return this.#clock.monotonic();
  }

  /**
   * Notes a yes. The life counts from when the question was sent, and a refusal since then outweighs it: an answer
   * that travelled longer must not undo a newer one.
   */
  allow(key: GrantKey, askedAt: number): void {
    if (this.#lifeMs === 0 || this.refusedSince(key, askedAt)) return;
    remember(this.#expiry, key, askedAt + this.#lifeMs);
  }

  /** Notes a 401, 403 or 404 to a request that reads. */
  refuse(key: GrantKey): void {
    this.#expiry.delete(key);
    remember(this.#refusedAt, key, this.#clock.monotonic());
  }

  /** Ends a grant; a yes that is on its way counts. */
  forget(key: GrantKey): void {
    this.#expiry.delete(key);
  }

  /** Whether a refusal came since that time. */
  refusedSince(key: GrantKey, time: number): boolean {
    const refusedAt = this.#refusedAt.get(key);
    return refusedAt !== undefined && refusedAt >= time;
  }
}

function remember(map: Map<GrantKey, number>, key: GrantKey, value: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= MAX_ENTRIES) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
