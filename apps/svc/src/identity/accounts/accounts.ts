import { randomUUIDv7 } from "node:crypto";
import type { Clock, Logger, Secret } from "@devplat/base";
import { BoundedMap } from "@devplat/base/bounded-map";
import type { HostOauth } from "../../code-host/host-oauth.ts";
import { SvcError } from "../../errors.ts";
import type { Store } from "../../storage/store.ts";
import type { HostAccounts, HostCredential } from "../../code-host/host-account.ts";

/** Milliseconds before its expiry when an access token is renewed: longer than a fetch takes to reach the code host. */
const RENEW_AHEAD_MS = 5 * 60_000;
/** Milliseconds after which a remembered credential is read again, as with tokens: other instances change it too. */
const REREAD_MS = 1000;
/** Users remembered; each takes less than 1 KB. */
const MAX_REMEMBERED = 10_000;
/** Milliseconds that a renewal may hold its lease: twice the longest exchange with the code host. */
const LEASE_MS = 20_000;
/** Milliseconds between two checks whether another instance has finished its renewal. */
const WAIT_STEP_MS = 200;

export interface AccountsParts {
  readonly store: Pick<Store, "users" | "leases">;
  /** Undefined: no OAuth client is configured, so nothing can be renewed. */
  readonly oauth: HostOauth | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** State of a user's account at the code host. */
export type AccountState = "connected" | "expired" | "none";

/** The code-host accounts of users, kept in the store and renewed there. */
export class Accounts implements HostAccounts {
  readonly #parts: AccountsParts;
  /** Id of this instance as holder of leases. */
  readonly #instance = randomUUIDv7();
  /** By user id; least recently read first. */
  readonly #remembered: BoundedMap<string, { readonly credential: HostCredential | undefined }>;
  /** Running renewals of this instance, by user id. */
  readonly #renewals = new Map<string, Promise<HostCredential | undefined>>();

  constructor(parts: AccountsParts) {
    this.#parts = parts;
    this.#remembered = new BoundedMap({
      max: MAX_REMEMBERED,
      ttlMs: REREAD_MS,
      now: () => parts.clock.monotonic(),
    });
  }

  async accessToken(userId: string): Promise<Secret | undefined> {
    const credential = await this.#read(userId);
    if (credential === undefined || !this.#endsSoon(credential)) return credential?.accessToken;
    if (credential.refreshToken === undefined) {
      return this.#isOver(credential) ? undefined : credential.accessToken;
    }
    const renewed = await this.#renew(userId, credential.accessToken);
    return renewed === undefined || this.#isOver(renewed) ? undefined : renewed.accessToken;
  }

  async renewAfterRefusal(userId: string, refused: Secret): Promise<Secret | undefined> {
    this.#remembered.delete(userId);
    const credential = await this.#read(userId);
    if (credential === undefined) return undefined;
    if (!isSame(credential.accessToken, refused)) return credential.accessToken;
    if (credential.refreshToken === undefined) return undefined;
    const renewed = await this.#renew(userId, refused);
    return renewed === undefined || isSame(renewed.accessToken, refused) ? undefined : renewed.accessToken;
  }

  /** Stores the credential of a login. It replaces an earlier one. */
  async connect(userId: string, credential: HostCredential): Promise<void> {
    await this.#parts.store.users.putCredential(userId, credential, this.#parts.clock.now());
    this.#remembered.delete(userId);
  }

  /** Deletes the credential, and revokes it at the code host where that is possible. False: there was none. */
  async disconnect(userId: string): Promise<boolean> {
    const { store, oauth, logger } = this.#parts;
    const credential = await store.users.credential(userId);
    const removed = await store.users.removeCredential(userId);
    this.#remembered.delete(userId);
    if (credential !== undefined && oauth !== undefined) {
      // The credential is deleted here even if the code host does not answer.
      await oauth.revoke(credential.accessToken).catch((error: unknown) => {
        logger.warn({ err: error, user_id: userId }, "a credential could not be revoked at the code host");
      });
    }
    return removed;
  }

  async state(userId: string): Promise<AccountState> {
    const credential = await this.#read(userId);
    if (credential === undefined) return "none";
    return this.#isOver(credential) && credential.refreshToken === undefined ? "expired" : "connected";
  }

  async #read(userId: string): Promise<HostCredential | undefined> {
    const since = this.#parts.clock.monotonic();
    const known = this.#remembered.peek(userId);
    if (known !== undefined) return known.credential;
    const credential = await this.#parts.store.users.credential(userId);
    this.#remembered.set(userId, { credential }, { since });
    return credential;
  }

  /** Renews the credential that has this access token, unless another instance did. @returns the stored credential */
  async #renew(userId: string, from: Secret): Promise<HostCredential | undefined> {
    const running = this.#renewals.get(userId);
    if (running !== undefined) return running;
    const renewal = this.#renewUnderLease(userId, from).finally(() => this.#renewals.delete(userId));
    this.#renewals.set(userId, renewal);
    return renewal;
  }

  async #renewUnderLease(userId: string, from: Secret): Promise<HostCredential | undefined> {
    const { store, clock } = this.#parts;
    const end = clock.monotonic() + LEASE_MS;
    for (;;) {
      const lease = await store.leases.acquire(`account/${userId}`, this.#instance, LEASE_MS);
      // Read under the lease: a refresh token that another instance used is invalid, and must not be used again.
      const stored = await store.users.credential(userId);
      this.#remembered.set(userId, { credential: stored });
      const isDone = stored === undefined || !isSame(stored.accessToken, from);
      if (lease !== undefined) {
        try {
          return isDone || stored.refreshToken === undefined
            ? stored
            : await this.#refresh(userId, stored, stored.refreshToken);
        } finally {
          await store.leases.release(lease);
        }
      }
      if (isDone || clock.monotonic() >= end) return stored;
      await clock.sleep(WAIT_STEP_MS);
    }
  }

  async #refresh(userId: string, old: HostCredential, refreshToken: Secret): Promise<HostCredential> {
    const { store, oauth, clock, logger } = this.#parts;
    if (oauth === undefined) return old;
    let next: HostCredential;
    try {
      next = await oauth.refresh(refreshToken);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      logger.warn({ err: error, user_id: userId }, "a code-host credential could not be renewed");
      // A code host that is down, or an OAuth client that is configured wrongly, says nothing about this account.
      if (error.code !== "login_refused") return old;
      next = {
        accessToken: old.accessToken,
        refreshToken: undefined,
        expiresAt: old.expiresAt ?? clock.now(),
      };
    }
    await store.users.putCredential(userId, next, clock.now());
    this.#remembered.set(userId, { credential: next });
    return next;
  }

  #endsSoon({ expiresAt }: HostCredential): boolean {
    return expiresAt !== undefined && expiresAt - RENEW_AHEAD_MS <= this.#parts.clock.now();
  }

  #isOver({ expiresAt }: HostCredential): boolean {
    return expiresAt !== undefined && expiresAt <= this.#parts.clock.now();
  }
}

function isSame(a: Secret, b: Secret): boolean {
  return a.reveal() === b.reveal();
}
