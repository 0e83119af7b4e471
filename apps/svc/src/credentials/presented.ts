import { claimedKind, holdsTokenPrefix, type TokenKind } from "./token-format.ts";

/**
 * Credential in an `Authorization` header:
 * - `none`: there is no header
 * - `own`: one of our tokens (by its prefix)
 * - `foreign`: somebody else's credential
 * - `garbled`: holds one of our prefixes, but not in the place of a credential; it must not go upstream
 */
export type Presented =
  | { readonly kind: "none" }
  | { readonly kind: "own"; readonly token: string; readonly tokenKind: TokenKind }
  | { readonly kind: "foreign" }
  | { readonly kind: "garbled" };

/** Our tokens are taken as `Bearer`, as `token`, and in either field of Basic (RFC 7617), with any other field. */
export function presentedCredential(authorization: string | undefined): Presented {
  if (authorization === undefined || authorization.trim() === "") return { kind: "none" };
  for (const token of credentialCandidates(authorization)) {
    const tokenKind = claimedKind(token);
    if (tokenKind !== undefined) return { kind: "own", token, tokenKind };
  }
  return holdsTokenPrefix(authorization) || hiddenTexts(authorization).some((text) => holdsTokenPrefix(text))
    ? { kind: "garbled" }
    : { kind: "foreign" };
}

/** Places of a credential in an `Authorization`: the likelier place first. */
export function credentialCandidates(authorization: string): string[] {
  const [, scheme = "", value = ""] = /^\s*(\S+)\s*(.*?)\s*$/s.exec(authorization) ?? [];
  if (["bearer", "token"].includes(scheme.toLowerCase())) return [value];
  if (scheme.toLowerCase() !== "basic") return [];
  const decoded = Buffer.from(value, "base64").toString("latin1");
  const colon = decoded.indexOf(":");
  return colon === -1 ? [decoded] : [decoded.slice(colon + 1), decoded.slice(0, colon)];
}

/** Whether the header presents anything: an empty field or a scheme that code hosts do not know is as good as none. */
export function presentsCredential(authorization: string | undefined): boolean {
  return credentialCandidates(authorization ?? "").some((text) => text !== "");
}

/** Every word of a header, also of what it decodes to: where a lenient reader might find a credential. */
export function credentialWords(authorization: string): string[] {
  return [authorization, ...hiddenTexts(authorization)].flatMap((text) => text.split(/[\s,;:="'\0]+/));
}

/** The words of a header, decoded as base64, in any scheme; without the NULs of UTF-16. */
function hiddenTexts(authorization: string): string[] {
  const words = authorization.match(/[A-Za-z0-9+/_-]{8,}/g) ?? [];
  return words.map((word) => Buffer.from(word, "base64").toString("latin1").replaceAll("\0", ""));
}
