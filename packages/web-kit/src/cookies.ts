/** The value of a cookie in a `Cookie` header (RFC 6265 section 4.2), or undefined. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined;
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim();
  }
  return undefined;
}

/**
 * The name of a cookie that, by https, nobody but this very host can set: pages of its sibling names cannot put theirs in
 * its place (RFC 6265bis, "The __Host- Prefix"). Such a cookie has the path `/`.
 *
 * @param secure whether the page came by https; browsers refuse the prefix otherwise
 */
export function hostCookieName(name: string, secure: boolean): string {
  return secure ? `__Host-${name}` : name;
}

export interface SessionCookieOptions {
  readonly name: string;
  /** No blanks, commas or semicolons; ours are base62. */
  readonly value: string;
  /** Whether the page came by https. */
  readonly secure: boolean;
  /** Default `/`. */
  readonly path?: string;
  /** Seconds; 0 deletes the cookie. */
  readonly maxAgeSeconds: number;
  /** Default `Lax`. `Strict`: not sent either when another site's link leads here. */
  readonly sameSite?: "Lax" | "Strict";
}

/** A `Set-Cookie` value that scripts cannot read and other sites' posts do not carry. */
export function sessionCookie(options: SessionCookieOptions): string {
  const { name, value, secure, path = "/", maxAgeSeconds, sameSite = "Lax" } = options;
  const parts = [
    `${name}=${value}`,
    `Path=${path}`,
    `Max-Age=${maxAgeSeconds}`,
    "HttpOnly",
    `SameSite=${sameSite}`,
  ];
  if (secure) parts.push("Secure");
  return parts.join("; ");
}
