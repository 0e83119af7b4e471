import { createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "@devplat/base";
import { stringMember } from "@devplat/base/json-member";
import { NAME_FORM } from "../repository-name.ts";

const SIGNATURE_FORM = /^(?:sha256=)?([0-9a-f]{64})$/;

/** Whether the header could hold a signature at all: if not, the body need not be read. */
export function hasSignatureForm(signature: string | undefined): boolean {
  return SIGNATURE_FORM.test(signature ?? "");
}

/**
 * Whether one of the secrets signed the body (HMAC-SHA-256, hexadecimal; GitHub writes `sha256=` in front, Gitea's own
 * header does not). Every secret is tried, in constant time each.
 */
export function isSigned(
  body: Uint8Array,
  signature: string | undefined,
  secrets: readonly Secret[],
): boolean {
  const given = SIGNATURE_FORM.exec(signature ?? "")?.[1];
  if (given === undefined) return false;
  const bytes = Buffer.from(given, "hex");
  let found = false;
  for (const secret of secrets) {
    const wanted = createHmac("sha256", secret.reveal()).update(body).digest();
    if (timingSafeEqual(wanted, bytes)) found = true;
  }
  return found;
}

/** The repository of a push event; undefined: the body names none. */
export function pushedRepository(
  body: unknown,
): { readonly owner: string; readonly name: string } | undefined {
  const [owner = "", name = "", ...rest] = (stringMember(body, "repository", "full_name") ?? "").split("/");
  if (rest.length > 0 || !NAME_FORM.test(owner) || !NAME_FORM.test(name)) return undefined;
  return { owner, name };
}
