import type { TokenLimits } from "../scopes/required-permissions.ts";
import type { IncomingHttpHeaders } from "node:http";
import { BRAND } from "../brand.ts";
import { SANDBOX_HEADERS } from "../http/request/text-answer.ts";
import type { ApiView } from "./api-view.ts";

const EXPIRATION = "github-authentication-token-expiration";
const SINGLE_SIGN_ON = "x-github-sso";

/** Request headers that go to the code host. `Authorization` is not among them: admission decides on it. */
export const FORWARDED: ReadonlySet<string> = new Set([
  "accept",
  "accept-encoding",
  "accept-language",
  "cache-control",
  "content-encoding",
  "content-language",
  "content-type",
  "graphql-features",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "pragma",
  "prefer",
  "range",
  "time-zone",
  "user-agent",
  "x-github-api-version",
  "x-github-next-global-id",
]);
/** One-time passwords belong to the caller's own credential, and are sent on only with it. */
export const FORWARDED_WITH_OWN: ReadonlySet<string> = new Set([
  "x-forgejo-otp",
  "x-gitea-otp",
  "x-github-otp",
]);
/** Headers that make the code host run another method than the checked one. */
export const METHOD_OVERRIDES = ["x-http-method", "x-http-method-override", "x-method-override"] as const;

/** Response headers that every caller gets. All others are dropped; `Link` and `Location` are rewritten. */
export const RELAYED: ReadonlySet<string> = new Set([
  "accept-ranges",
  "age",
  "allow",
  "cache-control",
  "content-digest",
  "content-disposition",
  "content-encoding",
  "content-language",
  "content-length",
  "content-md5",
  "content-range",
  "content-type",
  "date",
  "deprecation",
  "digest",
  "etag",
  "expires",
  "last-modified",
  "pragma",
  "preference-applied",
  "repr-digest",
  "retry-after",
  "sunset",
  "vary",
  "warning",
  "www-authenticate",
  "x-accepted-github-permissions",
  "x-gitea-object-type",
  "x-github-api-version-selected",
  "x-github-enterprise-version",
  "x-github-media-type",
  "x-github-request-id",
  "x-hasmore",
  "x-page",
  "x-pagecount",
  "x-perpage",
  "x-poll-interval",
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "x-ratelimit-resource",
  "x-ratelimit-used",
  "x-total",
  "x-total-count",
]);
/** Headers about the credential, for callers who sent their own. */
export const RELAYED_TO_OWN: ReadonlySet<string> = new Set([
  EXPIRATION,
  SINGLE_SIGN_ON,
  "x-accepted-oauth-scopes",
  "x-forgejo-otp",
  "x-gitea-otp",
  "x-github-otp",
  "x-oauth-client-id",
  "x-oauth-scopes",
]);

export type ApiHeaders = Record<string, string | string[]>;

/** @param ownCredential whether the credential is the caller's own; false: it replaced a token of this service */
export function forwardedHeaders(
  incoming: IncomingHttpHeaders,
  authorization: string | undefined,
  ownCredential = true,
): ApiHeaders {
  const headers: ApiHeaders = {};
  for (const name in incoming) {
    const value = incoming[name];
    if (value === undefined) continue;
    if (FORWARDED.has(name) || (ownCredential && FORWARDED_WITH_OWN.has(name))) headers[name] = value;
  }
  if (authorization !== undefined) headers["authorization"] = authorization;
  return headers;
}

/**
 * The headers of a relayed response, its addresses as the client sees them.
 *
 * @param token limits of the token of this service in the request: the headers describe it, not the credential that
 *   replaced it. Undefined: the credential is the caller's own
 */
export function answeredHeaders(
  upstream: IncomingHttpHeaders,
  view: ApiView,
  token: TokenLimits | undefined,
): ApiHeaders {
  const headers: ApiHeaders = {};
  const named = connectionNames(upstream.connection);
  for (const name in upstream) {
    const value = upstream[name];
    if (value === undefined) continue;
    if (!RELAYED.has(name) && !(token === undefined && RELAYED_TO_OWN.has(name))) continue;
    if (named?.includes(name) !== true) headers[name] = value;
  }
  const { link, location } = upstream;
  if (link !== undefined) headers["link"] = view.links(String(link));
  if (location !== undefined) headers["location"] = view.location(location);
  if (token !== undefined) Object.assign(headers, tokenHeaders(token, upstream));
  const type = headers["content-type"];
  if (typeof type === "string" && isActive(type)) headers["content-type"] = "text/plain; charset=utf-8";
  return { ...headers, ...SANDBOX_HEADERS };
}

/**
 * Headers about a token of this service. Its scopes have a separate header: `gh` reads `X-OAuth-Scopes` as the scopes of
 * OAuth, and rejects a token without `repo` among them. Fine-grained tokens of the code host do not have that header either.
 */
function tokenHeaders({ scopes, expiresAt }: TokenLimits, upstream: IncomingHttpHeaders): ApiHeaders {
  const headers: ApiHeaders = {
    [BRAND.scopesHeader]: Object.entries(scopes)
      .map(([resource, level]) => `${resource}:${level}`)
      .join(", "),
  };
  if (expiresAt !== undefined) headers[EXPIRATION] = expirationText(expiresAt);
  // The other form lists organizations of the account (docs.github.com, "Authenticating with SAML single sign-on").
  const signOn = upstream[SINGLE_SIGN_ON];
  if (typeof signOn === "string" && /^required\b/i.test(signOn)) headers[SINGLE_SIGN_ON] = signOn;
  return headers;
}

/** As GitHub writes it: `2026-11-22 14:40:05 UTC`. */
function expirationText(time: number): string {
  return `${new Date(time).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Header names that `Connection` declares to be of this connection only. */
function connectionNames(value: string | undefined): string[] | undefined {
  if (value === undefined || value === "keep-alive" || value === "close") return undefined;
  return value.toLowerCase().split(/\s*,\s*/);
}

/** Content that a browser would run. */
function isActive(type: string): boolean {
  return /^\s*(?:text\/html|application\/xhtml\+xml|image\/svg\+xml|text\/xml|application\/xml)\b/i.test(
    type,
  );
}
