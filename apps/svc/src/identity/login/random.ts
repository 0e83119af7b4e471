import { createHash, randomBytes, randomInt } from "node:crypto";

/** Bytes of states, verifiers and device codes: 32 give the 43 characters that RFC 7636 section 4.1 recommends. */
const BYTES = 32;

export function randomText(): string {
  return randomBytes(BYTES).toString("base64url");
}

/** Stored digest of a secret that a client shows later, also of a PKCE verifier (RFC 7636 section 4.2). */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/** Letters that are easy to distinguish and form no words (RFC 8628 section 6.1): 20^8 codes. */
const USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
const USER_CODE_HALF = 4;
const USER_CODE_FORM = new RegExp(`^[${USER_CODE_LETTERS}]{${2 * USER_CODE_HALF}}$`);

/** A code for people to type: `WDJB-MJHT`. */
export function userCode(): string {
  const half = (): string =>
    Array.from({ length: USER_CODE_HALF }, () =>
      USER_CODE_LETTERS.charAt(randomInt(USER_CODE_LETTERS.length)),
    ).join("");
  return `${half()}-${half()}`;
}

/** A typed code in the form that {@link userCode} gives; undefined: it is not a code. */
export function readUserCode(typed: string): string | undefined {
  const letters = typed.toUpperCase().replaceAll(/[\s-]/g, "");
  if (!USER_CODE_FORM.test(letters)) return undefined;
  return `${letters.slice(0, USER_CODE_HALF)}-${letters.slice(USER_CODE_HALF)}`;
}
