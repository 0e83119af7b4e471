import type { IncomingHttpHeaders } from "node:http";
import { SANDBOX_HEADERS } from "../http/text-answer.ts";
import type { ApiView } from "./api-view.ts";

/** Request headers that go to the code host. `Authorization` is not among them: admission decides on it. */
const FORWARDED = new Set(
  [
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
  ].values(),
);
/** Beginnings of further ones: `X-GitHub-Api-Version`, `X-GitHub-Next-Global-ID`, Gitea's `X-Gitea-…`. */
const FORWARDED_BEGINNINGS = ["x-github-", "x-octokit-", "x-gitea-", "x-forgejo-"];
/** Headers that would have another method judged than is done. */
export const METHOD_OVERRIDES = ["x-http-method", "x-http-method-override", "x-method-override"] as const;

/**
 * Answer headers that stay here: those of the connection (RFC 9110 section 7.6.1), and those that speak for an origin,
 * which is ours.
 */
const DROPPED = new Set(
  [
    "alt-svc",
    "clear-site-data",
    "connection",
    "content-security-policy",
    "content-security-policy-report-only",
    "keep-alive",
    "link",
    "location",
    "nel",
    "proxy-authenticate",
    "proxy-connection",
    "public-key-pins",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "server",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "sourcemap",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-content-type-options",
    "x-request-id",
  ].values(),
);

export type ApiHeaders = Record<string, string | string[]>;

export function forwardedHeaders(
  incoming: IncomingHttpHeaders,
  authorization: string | undefined,
): ApiHeaders {
  const headers: ApiHeaders = {};
  for (const name in incoming) {
    const value = incoming[name];
    if (value === undefined) continue;
    if (FORWARDED.has(name) || FORWARDED_BEGINNINGS.some((beginning) => name.startsWith(beginning))) {
      headers[name] = value;
    }
  }
  if (authorization !== undefined) headers["authorization"] = authorization;
  return headers;
}

/** The headers of a relayed answer, its addresses as the client sees them. */
export function answeredHeaders(upstream: IncomingHttpHeaders, view: ApiView): ApiHeaders {
  const headers: ApiHeaders = {};
  const named = connectionNames(upstream.connection);
  for (const name in upstream) {
    const value = upstream[name];
    if (value === undefined || DROPPED.has(name) || name.startsWith("access-control-")) continue;
    if (named?.includes(name) !== true) headers[name] = value;
  }
  const { link, location } = upstream;
  if (link !== undefined) headers["link"] = view.links(String(link));
  if (location !== undefined) headers["location"] = view.location(location);
  const type = headers["content-type"];
  if (typeof type === "string" && isActive(type)) headers["content-type"] = "text/plain; charset=utf-8";
  return { ...headers, ...SANDBOX_HEADERS };
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
