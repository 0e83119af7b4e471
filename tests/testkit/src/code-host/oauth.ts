import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Access } from "./access.ts";
import { DeviceGrants } from "./device-grants.ts";
import { html, json, type SideAnswer, type SideRequest } from "./side.ts";

/** Settings of logins at the code host. A test can change them at any time. */
export interface OauthSettings {
  /**
   * Result of a browser's visit to the authorize page: signed in as this login and sent back, asked by a form, or sent
   * back with `access_denied`.
   */
  consent: { readonly login: string } | "form" | "deny";
  /** Seconds that a user's access token lives; with it come refresh tokens, as of GitHub's apps. Undefined: for good. */
  expiresIn: number | undefined;
  /** Organizations with every user as a member. */
  organizations: readonly string[];
}

/** The OAuth side of the code host, for tests to look at and to steer. */
export interface CodeHostOauth {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly settings: OauthSettings;
  /** Every access token that was ever given out, in order; {@link OauthSide.isLive} says which still work. */
  readonly issued: readonly string[];
  isLive(accessToken: string): boolean;
  /** Where a person approves the codes of devices. */
  readonly devices: DeviceGrants;
  /** Makes the access token stop working, as if its time were over; its refresh token stays good. */
  expire(accessToken: string): void;
}

interface Code {
  readonly login: string;
  readonly redirectUri: string;
  readonly challenge: string | undefined;
}

interface Grant {
  readonly login: string;
  readonly accessToken: string;
  /** It came of the device flow. */
  readonly ofDevice: boolean;
}

const AUTHORIZE = "/login/oauth/authorize";
const TOKEN = "/login/oauth/access_token";
const DEVICE = "/login/device/code";
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";
/** GitHub's figures, in seconds. */
const REFRESH_LIFETIME = 15_897_600;

/**
 * The authorization code grant as GitHub does it: PKCE is checked when it was used, a code works once, errors of the
 * token endpoint come with status 200, refresh tokens rotate and take the old access token with them.
 */
export class OauthSide implements CodeHostOauth {
  readonly clientId = "Iv1.code-host-client";
  readonly clientSecret = "code-host-client-secret-planted";
  readonly settings: OauthSettings = { consent: { login: "alice" }, expiresIn: undefined, organizations: [] };
  readonly issued: string[] = [];
  readonly devices = new DeviceGrants();
  readonly #access: Access;
  readonly #codes = new Map<string, Code>();
  readonly #grants = new Map<string, Grant>();
  readonly #live = new Set<string>();

  constructor(access: Access) {
    this.#access = access;
  }

  isLive(accessToken: string): boolean {
    return this.#live.has(accessToken);
  }

  expire(accessToken: string): void {
    this.#live.delete(accessToken);
    this.#access.revoke(accessToken);
  }

  /** Undefined: not one of its paths. */
  answer(request: SideRequest): SideAnswer | undefined {
    if (request.path === AUTHORIZE) return this.#authorize(request);
    if (request.path === TOKEN && request.method === "POST") return this.#token(request);
    if (request.path === DEVICE && request.method === "POST") {
      if (request.form.get("client_id") !== this.clientId) return json(404, { error: "Not Found" });
      return this.devices.begin(request.base);
    }
    if (request.path.endsWith("/user/orgs")) {
      return json(
        200,
        this.settings.organizations.map((login) => ({ login })),
      );
    }
    const revoked = /\/applications\/([^/]+)\/token$/.exec(request.path);
    if (revoked !== null && request.method === "DELETE") return this.#revoke(request);
    return undefined;
  }

  #authorize({ method, query, form }: SideRequest): SideAnswer {
    const asked = method === "POST" ? form : query;
    const redirectUri = asked.get("redirect_uri") ?? "";
    const state = asked.get("state");
    if (asked.get("client_id") !== this.clientId || !URL.canParse(redirectUri)) {
      return html(404, "<h1>404</h1><p>No such client</p>");
    }
    const back = (parameters: Record<string, string>): SideAnswer => {
      const url = new URL(redirectUri);
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      if (state !== null) url.searchParams.set("state", state);
      return { status: 302, headers: { location: url.href }, body: "" };
    };
    const { consent } = this.settings;
    if (consent === "deny") return back({ error: "access_denied", error_description: "The user denied it" });
    if (consent === "form" && method !== "POST") return consentForm(query);
    const login = consent === "form" ? (form.get("login") ?? "") : (consent as { login: string }).login;
    const code = randomBytes(10).toString("hex");
    this.#codes.set(code, { login, redirectUri, challenge: asked.get("code_challenge") ?? undefined });
    return back({ code });
  }

  #token({ form }: SideRequest): SideAnswer {
    // Programs on a person's own host have no secret: neither their device codes nor what came of them need it.
    if (form.get("client_id") === this.clientId && form.get("grant_type") === DEVICE_GRANT) {
      const found = this.devices.poll(form.get("device_code") ?? "");
      return "error" in found ? refusal(found.error) : this.#issue(found.login, true);
    }
    if (
      form.get("client_id") === this.clientId &&
      this.#grants.get(form.get("refresh_token") ?? "")?.ofDevice
    ) {
      return this.#refresh(form.get("refresh_token") ?? "");
    }
    if (form.get("client_id") !== this.clientId || !same(form.get("client_secret"), this.clientSecret)) {
      return refusal("incorrect_client_credentials");
    }
    if (form.get("grant_type") === "refresh_token") {
      return this.#refresh(form.get("refresh_token") ?? "");
    }
    const code = this.#codes.get(form.get("code") ?? "");
    this.#codes.delete(form.get("code") ?? "");
    if (code === undefined) return refusal("bad_verification_code");
    if (form.get("redirect_uri") !== code.redirectUri) return refusal("redirect_uri_mismatch");
    if (code.challenge !== undefined) {
      const hashed = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      if (hashed !== code.challenge) return refusal("bad_verification_code");
    }
    return this.#issue(code.login);
  }

  #refresh(refreshToken: string): SideAnswer {
    const grant = this.#grants.get(refreshToken);
    if (grant === undefined) return refusal("bad_refresh_token");
    this.#grants.delete(refreshToken);
    this.expire(grant.accessToken);
    return this.#issue(grant.login, grant.ofDevice);
  }

  #issue(login: string, ofDevice = false): SideAnswer {
    const accessToken = `ghu_planted${randomBytes(18).toString("hex")}`;
    this.issued.push(accessToken);
    this.#live.add(accessToken);
    this.#access.addUser(login, accessToken, this.#access.repositoriesOf(login));
    const { expiresIn } = this.settings;
    if (expiresIn === undefined) {
      return json(200, { access_token: accessToken, token_type: "bearer", scope: "repo" });
    }
    const refreshToken = `ghr_planted${randomBytes(18).toString("hex")}`;
    this.#grants.set(refreshToken, { login, accessToken, ofDevice });
    return json(200, {
      access_token: accessToken,
      expires_in: expiresIn,
      refresh_token: refreshToken,
      refresh_token_expires_in: REFRESH_LIFETIME,
      token_type: "bearer",
      scope: "",
    });
  }

  #revoke({ authorization, text }: SideRequest): SideAnswer {
    const wanted = `Basic ${Buffer.from(`${this.clientId}:${this.clientSecret}`).toString("base64")}`;
    if (authorization !== wanted) return json(404, { message: "Not Found" });
    const { access_token: token } = JSON.parse(text) as { access_token?: string };
    if (token === undefined || !this.#live.has(token)) return json(404, { message: "Not Found" });
    this.expire(token);
    return { status: 204, body: "" };
  }
}

/** GitHub answers errors of this endpoint with 200. */
function refusal(error: string): SideAnswer {
  return json(200, {
    error,
    error_description: "It was refused; see the documentation",
    error_uri: "https://docs",
  });
}

function consentForm(query: URLSearchParams): SideAnswer {
  const hidden = [...query]
    .map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`)
    .join("");
  return html(
    200,
    `<h1>Sign in to the code host</h1><form method="post" action="${AUTHORIZE}">${hidden}
     <label>Login <input name="login"></label><button>Authorize</button></form>`,
  );
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

function same(given: string | null, wanted: string): boolean {
  const [a, b] = [Buffer.from(given ?? ""), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
