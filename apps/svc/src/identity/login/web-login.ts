import { randomUUIDv7 } from "node:crypto";
import { Secret, type Clock } from "@devplat/base";
import { hostCookieName } from "@devplat/web-kit/cookies";
import type { Accounts } from "../accounts/accounts.ts";
import type { AuditTrail } from "../../audit/audit-event.ts";
import { loginRefused, type HostOauth } from "../../code-host/host-oauth.ts";
import { SvcError } from "../../errors.ts";
import type { OwnAddress } from "../../own-address.ts";
import type { Store } from "../../storage/store.ts";
import type { AllowedUsers } from "./allowed-users.ts";
import type { Client } from "../client.ts";
import { digest, randomText } from "./random.ts";
import { returnPath } from "./return-to.ts";
import type { Sessions, StartedSession } from "./sessions.ts";

export const CALLBACK_PATH = "/auth/callback";
/** Milliseconds from the first page to the callback. A user may have to find a second factor. */
export const LOGIN_LIFETIME_MS = 10 * 60_000;
const KIND = "login_state";

export interface WebLoginParts {
  readonly store: Pick<Store, "oneTime" | "users">;
  readonly oauth: HostOauth;
  readonly sessions: Sessions;
  readonly accounts: Pick<Accounts, "connect">;
  readonly address: OwnAddress;
  readonly allowed: Pick<AllowedUsers, "mayLogIn" | "confirm">;
  readonly audit: AuditTrail;
  readonly clock: Clock;
}

/** Response to the browser that begins a login. */
export interface BegunLogin {
  /** The code host's page. */
  readonly location: string;
  /** A cookie that binds the login to this browser. */
  readonly cookie: { readonly name: string; readonly value: string };
}

/** The parameters of the callback, unchecked. */
export interface LoginCallback {
  readonly code: string | null;
  readonly state: string | null;
  readonly error: string | null;
  readonly issuer: string | null;
}

/** State between the two requests of a login, stored encrypted. */
interface LoginState {
  readonly verifier: string;
  /** Digest of the cookie's value. */
  readonly browser: string;
  readonly redirectUri: string;
  readonly returnTo: string;
}

/**
 * Logins with an account of the code host: authorization code, PKCE, and a state that works once, for ten minutes, and
 * only in the browser that it was made for. So nobody can be logged in with somebody else's callback, and a callback
 * that is seen by others is of no use to them.
 */
export class WebLogin {
  readonly #parts: WebLoginParts;

  constructor(parts: WebLoginParts) {
    this.#parts = parts;
  }

  async begin(returnTo: string | null): Promise<BegunLogin> {
    const { store, oauth, address, clock } = this.#parts;
    const [state, verifier, browser] = [randomText(), randomText(), randomText()];
    const redirectUri = address.baseUrl + CALLBACK_PATH;
    const kept: LoginState = {
      verifier,
      browser: digest(browser),
      redirectUri,
      returnTo: returnPath(returnTo),
    };
    const now = clock.now();
    await store.oneTime.put(
      { kind: KIND, key: digest(state), value: JSON.stringify(kept), expiresAt: now + LOGIN_LIFETIME_MS },
      now,
    );
    return {
      location: oauth.authorizeUrl({ state, challenge: digest(verifier), redirectUri }),
      cookie: { name: this.#cookieName(state), value: browser },
    };
  }

  /** Name of the cookie that belongs to a callback. Several logins can run in one browser. */
  cookieFor(callback: LoginCallback): string | undefined {
    return callback.state === null ? undefined : this.#cookieName(callback.state);
  }

  #cookieName(state: string): string {
    return hostCookieName(`svc_login_${digest(state).slice(0, 10)}`, this.#parts.address.isHttps);
  }

  /**
   * Ends a login: a new session, never one that was there before, and the account's credential stored.
   *
   * @param browser value of the cookie, as the browser sent it
   * @throws SvcError `login_refused`, `login_misconfigured`, `host_unreachable`
   */
  async finish(
    callback: LoginCallback,
    browser: string | undefined,
    client: Client,
  ): Promise<{ readonly session: StartedSession; readonly returnTo: string }> {
    const { audit } = this.#parts;
    try {
      const done = await this.#finish(callback, browser, client);
      const { login, sessionId } = done.session.identity;
      audit.record({
        action: "login.succeeded",
        outcome: "allowed",
        actor: { kind: "user", login, credentialId: sessionId },
        details: { method: "oauth" },
        ...origin(client),
      });
      return done;
    } catch (error) {
      audit.record({
        action: "login.failed",
        outcome: error instanceof SvcError && error.code === "login_refused" ? "denied" : "failed",
        actor: { kind: "anonymous" },
        details: { method: "oauth", reason: error instanceof SvcError ? error.code : "internal" },
        ...origin(client),
      });
      throw error;
    }
  }

  async #finish(
    callback: LoginCallback,
    browser: string | undefined,
    client: Client,
  ): Promise<{ session: StartedSession; returnTo: string }> {
    const { store, oauth, sessions, accounts, clock } = this.#parts;
    const entry =
      callback.state === null
        ? undefined
        : await store.oneTime.take(KIND, digest(callback.state), clock.now());
    const kept = entry === undefined ? undefined : (JSON.parse(entry.value) as LoginState);
    if (kept === undefined || browser === undefined || digest(browser) !== kept.browser) {
      throw loginRefused("This sign-in was not begun in this browser, was ended before, or took too long");
    }
    if (oauth.isForeignIssuer(callback.issuer))
      throw loginRefused("The response does not come from the code host");
    if (callback.error !== null) {
      throw loginRefused(
        callback.error === "access_denied"
          ? "The sign-in was declined at the code host"
          : "The code host ended the sign-in with an error",
      );
    }
    if (callback.code === null) throw loginRefused("The code host's response is not complete");
    const credential = await oauth.exchange({
      code: callback.code,
      verifier: new Secret(kept.verifier),
      redirectUri: kept.redirectUri,
    });
    const found = await oauth.user(credential.accessToken);
    await this.#requireAllowed(found.login, credential.accessToken);
    const user = await store.users.ensureHost(found.id, found.login, randomUUIDv7(), clock.now());
    await accounts.connect(user.id, credential);
    this.#parts.allowed.confirm(user.id);
    return { session: await sessions.start(user, "user", client), returnTo: kept.returnTo };
  }

  async #requireAllowed(login: string, accessToken: Secret): Promise<void> {
    const { oauth, allowed } = this.#parts;
    if (await allowed.mayLogIn(login, accessToken)) return;
    await oauth.revoke(accessToken).catch(() => false);
    throw new SvcError("login_refused", `The account ${login} may not sign in here`, {
      hint: "Ask the administrator (login.allowed_users, login.allowed_organizations).",
    });
  }
}

function origin({ address, requestId }: Client): { remoteAddress: string; requestId: string | undefined } {
  return { remoteAddress: address, requestId };
}
