import { Secret } from "@devplat/base";
import { numberMember } from "@devplat/base/json-member";
import { HttpClientError, type HttpClient } from "@devplat/http-client";
import type * as oauth4webapi from "oauth4webapi";
import { OauthError } from "./errors.ts";
import { strictResponse } from "./response.ts";

/** Time limit for a request and its response, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum size of a response, in bytes. Token responses have a few kilobytes. */
const MAX_BYTES = 256 * 1024;
/** Form of an OAuth error code that may be shown. Free text of a server is never shown. */
const REASON = /^[a-z_]{1,40}$/;

export interface OauthClientOptions {
  /** HTTP client with the proxy and the certificate authorities to use. */
  readonly http: HttpClient;
  readonly clientId: string;
  /** Client secret, sent in the form. Default: none, for a public client. */
  readonly clientSecret?: Secret;
  readonly authorizeUrl?: string;
  readonly tokenUrl: string;
  readonly deviceUrl?: string;
  /** Header `User-Agent`. Default: none. */
  readonly userAgent?: string;
  /** Default {@link TIMEOUT_MS}. */
  readonly timeoutMs?: number;
}

export interface OauthTokens {
  readonly accessToken: Secret;
  readonly refreshToken: Secret | undefined;
  /** In lower case, usually `bearer`. */
  readonly tokenType: string;
  readonly scope: string | undefined;
  /** Seconds. */
  readonly expiresIn: number | undefined;
}

export interface DeviceAuthorization {
  readonly deviceCode: Secret;
  readonly userCode: string;
  readonly verificationUri: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** Seconds between requests for the token. */
  readonly interval: number | undefined;
}

/**
 * A client of an OAuth 2 server (RFC 6749), by oauth4webapi: authorization code with PKCE (RFC 7636), device flow (RFC 8628)
 * and refresh. Requests throw OauthError, or HttpClientError if the server cannot be reached.
 */
export class OauthClient {
  readonly #options: OauthClientOptions;

  constructor(options: OauthClientOptions) {
    this.#options = options;
  }

  /** URL to open in the browser. @param more further parameters, such as `scope` and `audience` */
  authorizationUrl(
    request: { readonly state: string; readonly challenge: string; readonly redirectUri: string },
    more: Readonly<Record<string, string>> = {},
  ): string {
    const { authorizeUrl, clientId } = this.#options;
    if (authorizeUrl === undefined) throw new TypeError("the client has no authorizeUrl");
    const url = new URL(authorizeUrl);
    const parameters = {
      response_type: "code",
      client_id: clientId,
      redirect_uri: request.redirectUri,
      state: request.state,
      code_challenge: request.challenge,
      code_challenge_method: "S256",
      ...more,
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Exchanges an authorization code for tokens. The caller must first check the state of the callback. */
  exchangeCode(
    grant: { readonly code: string; readonly verifier: Secret; readonly redirectUri: string },
    signal?: AbortSignal,
  ): Promise<OauthTokens> {
    return this.#tokens(async ({ library, server, client, authentication, options }) => {
      const callback = library.validateAuthResponse(
        server,
        client,
        new URLSearchParams({ code: grant.code }),
        library.expectNoState,
      );
      const response = await library.authorizationCodeGrantRequest(
        server,
        client,
        authentication,
        callback,
        grant.redirectUri,
        grant.verifier.reveal(),
        options,
      );
      return library.processAuthorizationCodeResponse(server, client, response);
    }, signal);
  }

  /** Refreshes the tokens. A server that rotates refresh tokens then refuses the old one. */
  refresh(refreshToken: Secret, signal?: AbortSignal): Promise<OauthTokens> {
    return this.#tokens(async ({ library, server, client, authentication, options }) => {
      const token = refreshToken.reveal();
      const response = await library.refreshTokenGrantRequest(server, client, authentication, token, options);
      return library.processRefreshTokenResponse(server, client, response);
    }, signal);
  }

  /** Begins a device flow. @param parameters further parameters, such as `scope` and `audience` */
  async startDevice(
    parameters: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<DeviceAuthorization> {
    const found = await this.#run(async ({ library, server, client, authentication, options }) => {
      const response = await library.deviceAuthorizationRequest(
        server,
        client,
        authentication,
        parameters,
        options,
      );
      return library.processDeviceAuthorizationResponse(server, client, response);
    }, signal);
    return {
      deviceCode: new Secret(found.device_code),
      userCode: found.user_code,
      verificationUri: found.verification_uri,
      expiresIn: found.expires_in,
      interval: found.interval,
    };
  }

  /** Requests the token once. `authorization_pending` and `slow_down` are reasons of an OauthError. */
  deviceToken(deviceCode: Secret, signal?: AbortSignal): Promise<OauthTokens> {
    return this.#tokens(async ({ library, server, client, authentication, options }) => {
      const code = deviceCode.reveal();
      const response = await library.deviceCodeGrantRequest(server, client, authentication, code, options);
      return library.processDeviceCodeResponse(server, client, response);
    }, signal);
  }

  async #tokens(
    exchange: (parts: Parts) => Promise<oauth4webapi.TokenEndpointResponse>,
    signal: AbortSignal | undefined,
  ): Promise<OauthTokens> {
    const found = await this.#run(exchange, signal);
    return {
      accessToken: new Secret(found.access_token),
      refreshToken: found.refresh_token === undefined ? undefined : new Secret(found.refresh_token),
      tokenType: found.token_type,
      scope: found.scope,
      expiresIn: found.expires_in,
    };
  }

  async #run<T>(exchange: (parts: Parts) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const {
      http,
      clientId,
      clientSecret,
      tokenUrl,
      deviceUrl,
      userAgent,
      timeoutMs = TIMEOUT_MS,
    } = this.#options;
    // Loaded on the first use: with the Fetch classes of Node it takes 50 ms and 20 MB.
    const library = await import("oauth4webapi");
    let status = 0;
    const send = async (
      url: string,
      request: oauth4webapi.CustomFetchOptions<string, URLSearchParams | undefined>,
    ): Promise<Response> => {
      const { "user-agent": _library, ...headers } = request.headers;
      const response = await http.request(url, {
        method: request.method === "GET" ? "GET" : "POST",
        headers: { ...headers, ...(userAgent !== undefined && { "user-agent": userAgent }) },
        ...(request.body !== undefined && { body: request.body.toString() }),
        timeoutMs,
        maxBytes: MAX_BYTES,
        ...(signal !== undefined && { signal }),
      });
      ({ status } = response);
      return strictResponse(response);
    };
    const server: oauth4webapi.AuthorizationServer = {
      issuer: new URL(tokenUrl).origin,
      token_endpoint: tokenUrl,
      ...(deviceUrl !== undefined && { device_authorization_endpoint: deviceUrl }),
    };
    const authentication =
      clientSecret === undefined ? library.None() : library.ClientSecretPost(clientSecret.reveal());
    // The caller's configuration decides whether http is allowed.
    const options = { [library.customFetch]: send, [library.allowInsecureRequests]: true };
    try {
      return await exchange({ library, server, client: { client_id: clientId }, authentication, options });
    } catch (error) {
      if (error instanceof HttpClientError) throw error;
      if (error instanceof library.ResponseBodyError) {
        const reason = REASON.test(error.error) ? error.error : undefined;
        throw new OauthError("refused", `the server refuses: ${reason ?? "no reason given"}`, {
          reason,
          interval: numberMember(error.cause, "interval"),
          status,
        });
      }
      const isForeign =
        error instanceof library.OperationProcessingError ||
        error instanceof library.UnsupportedOperationError ||
        error instanceof library.WWWAuthenticateChallengeError;
      // No cause, because the library's errors hold the response.
      if (isForeign)
        throw new OauthError("invalid_response", "the response is not an OAuth response", { status });
      throw error;
    }
  }
}

interface Parts {
  readonly library: typeof oauth4webapi;
  readonly server: oauth4webapi.AuthorizationServer;
  readonly client: oauth4webapi.Client;
  readonly authentication: oauth4webapi.ClientAuth;
  readonly options: Record<symbol, unknown>;
}
