/** Hash function of object ids (gitprotocol-v2, capability `object-format`). */
export type ObjectFormat = "sha1" | "sha256";

/** Length of an object id and of a pack's trailer, in bytes. */
export const OID_BYTES: Readonly<Record<ObjectFormat, number>> = { sha1: 20, sha256: 32 };

const FORMS: Readonly<Record<ObjectFormat, RegExp>> = {
  sha1: /^[0-9a-f]{40}$/,
  sha256: /^[0-9a-f]{64}$/,
};

/** Whether the text is an object id of this format, in lower case as git sends it. */
export function isOid(text: string, format: ObjectFormat): boolean {
  return FORMS[format].test(text);
}

/** Whether the text is an object id of either format. */
export function isAnyOid(text: string): boolean {
  return isOid(text, "sha1") || isOid(text, "sha256");
}
