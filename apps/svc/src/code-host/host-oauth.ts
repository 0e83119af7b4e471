import { Secret, type Clock } from "@devplat/base";
import { jsonMember, stringMember } from "@devplat/base/json-member";
import { HttpClientError } from "@devplat/http-client";
import { OauthClient, OauthError, type OauthTokens } from "@devplat/oauth";
import { BRAND } from "../brand.ts";
import type { HostCredential } from "./host-account.ts";
import { SvcError } from "../errors.ts";
import type { CodeHost, HostUser } from "./code-host.ts";
import { lostHost, unreachable, type HostClient } from "./host-client.ts";

/** Organizations of one page (the maximum of Gitea), and maximum pages that are read. */
const PAGE = 50;
const MAX_PAGES = 20;

export interface HostOauthOptions {
  readonly host: CodeHost;
  readonly client: HostClient;
  readonly clientId: string;
  readonly clientSecret: Secret;
  readonly clock: Clock;
}

/**
 * Logins at the code host: the authorization code grant (RFC 6749 section 4.1) with PKCE (RFC 7636), and refreshing.
 * GitHub answers refusals of the token endpoint with status 200, so what counts is what the body holds.
 */
export class HostOauth {
  readonly #options: HostOauthOptions;
  readonly #oauth: OauthClient;

  constructor(options: HostOauthOptions) {
    this.#options = options;
    const { host, client, clientId, clientSecret } = options;
    this.#oauth = new OauthClient({
      http: client.http,
      timeoutMs: client.timeoutMs,
      userAgent: BRAND.command,
      clientId,
      clientSecret,
      authorizeUrl: host.oauth.authorizeUrl,
      tokenUrl: host.oauth.tokenUrl,
    });
  }

  /** Where to send the browser. */
  authorizeUrl(request: {
    readonly state: string;
    readonly challenge: string;
    readonly redirectUri: string;
  }): string {
    return this.#oauth.authorizationUrl(request, { scope: this.#options.host.oauth.scope });
  }

  /**
   * Whether the callback says that it comes from another authorization server than the one that was asked (RFC 9207
   * section 2.4). One that says nothing passes: there is only one here.
   */
  isForeignIssuer(issuer: string | null): boolean {
    if (issuer === null) return false;
    return URL.parse(issuer)?.origin !== new URL(this.#options.host.oauth.authorizeUrl).origin;
  }

  /** @throws SvcError `login_refused` (the code is wrong, used or too old), `login_misconfigured`, `host_unreachable` */
  async exchange(grant: {
    readonly code: string;
    readonly verifier: Secret;
    readonly redirectUri: string;
  }): Promise<HostCredential> {
    return this.#credential(() => this.#oauth.exchangeCode(grant));
  }

  /**
   * A new credential for a refresh token. The old one is void after that, if the code host rotates; a code host that
   * gives none back keeps the old one good.
   *
   * @throws SvcError `login_refused` (the account must be connected again), `login_misconfigured`, `host_unreachable`
   */
  async refresh(refreshToken: Secret): Promise<HostCredential> {
    const renewed = await this.#credential(() => this.#oauth.refresh(refreshToken));
    return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken };
  }

  /** Gives a grant back at the code host, where it knows such a thing. False: it does not, or did not take it. */
  async revoke(accessToken: Secret): Promise<boolean> {
    const { host, client, clientId, clientSecret } = this.#options;
    const url = host.oauth.revokeUrl(clientId);
    if (url === undefined) return false;
    const pair = Buffer.from(`${clientId}:${clientSecret.reveal()}`).toString("base64");
    const { status } = await client.ask("DELETE", url, {
      authorization: new Secret(`Basic ${pair}`),
      json: { access_token: accessToken.reveal() },
    });
    return status === 204;
  }

  /** Whose token it is. @throws SvcError `login_refused`, `host_unreachable` */
  async user(accessToken: Secret): Promise<HostUser> {
    const { host, client } = this.#options;
    const url = `${host.apiUrl}/user`;
    const { status, body } = await client.ask("GET", url, {
      authorization: host.apiAuthorization(accessToken),
    });
    if (status === 401 || status === 403) throw loginRefused("The code host does not say whose token it is");
    const login = stringMember(body, "login");
    const id = jsonMember(body, "id");
    const known = typeof id === "number" || (typeof id === "string" && id !== "");
    if (status !== 200 || login === undefined || !known) throw unreachable(new URL(url), `status ${status}`);
    return { id: String(id), login };
  }

  /** Logins of the organizations that the user is a member of. @throws SvcError `login_refused`, `host_unreachable` */
  async organizations(accessToken: Secret): Promise<readonly string[]> {
    const { host, client } = this.#options;
    const found: string[] = [];
    for (let page = 1; page <= MAX_PAGES; page++) {
      const url = `${host.apiUrl}/user/orgs?per_page=${PAGE}&limit=${PAGE}&page=${page}`;
      const authorization = host.apiAuthorization(accessToken);
      const { status, body } = await client.ask("GET", url, { authorization });
      if (status === 401 || status === 403)
        throw loginRefused("The code host does not show the organizations");
      if (status !== 200 || !Array.isArray(body)) throw unreachable(new URL(url), `status ${status}`);
      // Gitea calls the login of an organization its user name.
      found.push(
        ...body.flatMap(
          (each: unknown) => stringMember(each, "login") ?? stringMember(each, "username") ?? [],
        ),
      );
      if (body.length < PAGE) break;
    }
    return found;
  }

  async #credential(ask: () => Promise<OauthTokens>): Promise<HostCredential> {
    const { host, clock } = this.#options;
    const url = new URL(host.oauth.tokenUrl);
    const asked = clock.now();
    try {
      const { accessToken, refreshToken, expiresIn } = await ask();
      return { accessToken, refreshToken, expiresAt: expiresIn ? asked + expiresIn * 1000 : undefined };
    } catch (error) {
      if (error instanceof HttpClientError) throw lostHost(url, error);
      if (!(error instanceof OauthError)) throw error;
      if (error.code === "invalid_response") throw unreachable(url, `status ${error.status}`);
      throw refusal(error.reason, url);
    }
  }
}

/** Errors that are about the grant itself: RFC 6749 section 5.2, GitHub's words, and Gitea's for codes and refresh tokens. */
const GRANT_ERRORS: readonly (string | undefined)[] = [
  "invalid_grant",
  "bad_refresh_token",
  "bad_verification_code",
  "access_denied",
  "unauthorized_client",
];
const CLIENT_ERRORS: readonly (string | undefined)[] = ["incorrect_client_credentials", "invalid_client"];

/**
 * In our words: what the code host writes is not passed on. An error that is not known to be about the grant says nothing
 * about it: a refresh token must not be given up for a code host that has a bad day.
 */
function refusal(error: string | undefined, url: URL): SvcError {
  if (GRANT_ERRORS.includes(error)) {
    return loginRefused("The code host did not take the login: it was used before, or took too long");
  }
  if (CLIENT_ERRORS.includes(error)) {
    return misconfigured("host.client_id and host.client_secret are not taken by the code host");
  }
  if (error === "redirect_uri_mismatch") {
    return misconfigured(
      "the callback address that is registered at the code host is not <server.base_url>/auth/callback",
    );
  }
  return unreachable(url, "it answered with an error");
}

/** The error for a login that did not work out; another try may. */
export function loginRefused(message: string): SvcError {
  return new SvcError("login_refused", message, { hint: "Sign in again." });
}

function misconfigured(what: string): SvcError {
  return new SvcError("login_misconfigured", `Logins are not set up right: ${what}`, {
    hint: "The administrator has to correct it.",
  });
}
