import type { IncomingHttpHeaders } from "node:http";
import { UPLOAD_PACK_REQUEST, UPLOAD_PACK_RESULT } from "@devplat/git-protocol";
import { SANDBOX_HEADERS } from "../http/request/text-answer.ts";

/** Request headers that go to the code host. `Authorization` is not among them: admission decides on it. */
export const GIT_FORWARDED = [
  "accept",
  "accept-language",
  "cache-control",
  "content-encoding",
  "content-type",
  "git-protocol",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "pragma",
  "range",
  "user-agent",
] as const;

/** Response headers that go to the client. `Location` is not among them: it is rewritten or dropped. */
export const GIT_RELAYED: ReadonlySet<string> = new Set(
  [
    "accept-ranges",
    "age",
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "lfs-authenticate",
    "pragma",
    "retry-after",
    "vary",
    "www-authenticate",
    "x-github-request-id",
  ].values(),
);

export type HeaderRecord = Record<string, string | string[]>;

/** The headers of a request to the code host; `Accept-Encoding: identity`, so that packs are not inflated for us. */
export function upstreamHeaders(
  incoming: IncomingHttpHeaders,
  authorization: string | undefined,
): HeaderRecord {
  const headers: HeaderRecord = { "accept-encoding": "identity" };
  for (const name of GIT_FORWARDED) {
    const value = incoming[name];
    if (value !== undefined) headers[name] = value;
  }
  if (authorization !== undefined) headers["authorization"] = authorization;
  return headers;
}

/** The headers of a relayed response, without `Location`. */
export function relayedHeaders(
  upstream: Readonly<Record<string, string | string[] | undefined>>,
): HeaderRecord {
  const headers: HeaderRecord = {};
  for (const [name, value] of Object.entries(upstream)) {
    if (value !== undefined && GIT_RELAYED.has(name.toLowerCase())) headers[name] = value;
  }
  return { ...headers, ...SANDBOX_HEADERS };
}

/** One value of a header that may have come several times. */
export function singleHeader(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

/** The media type of a `Content-Type`, in lower case, without parameters. */
export function mediaType(value: string | string[] | undefined): string {
  return (singleHeader(value) ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Whether a body of this type is a page that a browser would show as one: it is replaced by a text of this service. */
export function isPage(type: string): boolean {
  return type === "text/html" || type === "application/xhtml+xml";
}

export { UPLOAD_PACK_REQUEST, UPLOAD_PACK_RESULT };

/** Whether a response's head is that of an upload-pack result whose bytes we can read. */
export function isUploadPackResult(response: {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}): boolean {
  const encoding = response.headers["content-encoding"];
  return (
    response.status === 200 &&
    mediaType(response.headers["content-type"]) === UPLOAD_PACK_RESULT &&
    (encoding === undefined || encoding === "identity")
  );
}

/** The headers of a command of protocol v2 that this service sends for itself. */
export function ownCommandHeaders(userAgent: string, authorization: string | undefined): HeaderRecord {
  return {
    "content-type": UPLOAD_PACK_REQUEST,
    accept: UPLOAD_PACK_RESULT,
    "accept-encoding": "identity",
    "git-protocol": "version=2",
    "user-agent": userAgent,
    ...(authorization === undefined ? {} : { authorization }),
  };
}
