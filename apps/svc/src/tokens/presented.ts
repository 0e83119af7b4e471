import { claimedKind, holdsTokenPrefix, type TokenKind } from "./format.ts";

/**
 * What an `Authorization` header presents:
 * - `none`: there is no header
 * - `own`: a token of ours (by its prefix)
 * - `foreign`: somebody else's credential
 * - `garbled`: holds one of our prefixes, but not where a credential stands; it must not go upstream
 */
export type Presented =
  | { readonly kind: "none" }
  | { readonly kind: "own"; readonly token: string; readonly tokenKind: TokenKind }
  | { readonly kind: "foreign" }
  | { readonly kind: "garbled" };

/** Our tokens are taken as `Bearer`, as `token`, and in either field of Basic (RFC 7617), with any other field. */
export function presentedCredential(authorization: string | undefined): Presented {
  if (authorization === undefined || authorization.trim() === "") return { kind: "none" };
  const [, scheme = "", value = ""] = /^\s*(\S+)\s*(.*?)\s*$/s.exec(authorization) ?? [];
  const candidates: string[] = [];
  if (["bearer", "token"].includes(scheme.toLowerCase())) candidates.push(value);
  let decoded = "";
  if (scheme.toLowerCase() === "basic") {
    decoded = Buffer.from(value, "base64").toString("latin1");
    const colon = decoded.indexOf(":");
    if (colon === -1) candidates.push(decoded);
    else candidates.push(decoded.slice(colon + 1), decoded.slice(0, colon));
  }
  for (const token of candidates) {
    const tokenKind = claimedKind(token);
    if (tokenKind !== undefined) return { kind: "own", token, tokenKind };
  }
  return holdsTokenPrefix(authorization) || holdsTokenPrefix(decoded)
    ? { kind: "garbled" }
    : { kind: "foreign" };
}
