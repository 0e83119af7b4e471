/** Strict Content-Security-Policy: nothing from other origins, no inline script or style, no framing. */
export const STRICT_CSP = "default-src 'self'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'";

/**
 * Headers for every response to a browser, including errors and streams.
 *
 * `Referrer-Policy` is `same-origin`, because with `no-referrer` browsers send `Origin: null` on form posts, and the
 * Origin check would refuse the program's own forms.
 */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy": STRICT_CSP,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};
