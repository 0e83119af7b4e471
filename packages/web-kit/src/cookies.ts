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
 * Name of a cookie. By https, only this host can set it: pages of sibling host names cannot replace it (RFC 6265bis,
 * "The __Host- Prefix"). Such a cookie has the path `/`.
 *
 * @param secure whether the page was sent by https; else browsers refuse the prefix
 */
export function hostCookieName(name: string, secure: boolean): string {
  return secure ? `__Host-${name}` : name;
}

export interface SessionCookieOptions {
  readonly name: string;
  /** Value without spaces, commas and semicolons. */
  readonly value: string;
  /** Whether the page was sent by https. */
  readonly secure: boolean;
  /** Default `/`. */
  readonly path?: string;
  /** Lifetime in seconds. 0 deletes the cookie. */
  readonly maxAgeSeconds: number;
  /** Default `Lax`. With `Strict`, a link on another site does not send the cookie either. */
  readonly sameSite?: "Lax" | "Strict";
}

/** Value of `Set-Cookie`. Scripts cannot read the cookie, and POST requests from other sites do not send it. */
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
