import { ObjectStoreError } from "./errors.ts";

/** Limit of S3, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 1024;
/** Limit of one segment where a store keeps objects as files. */
const MAX_SEGMENT_BYTES = 255;

/**
 * Checks that every store keeps a name as it is. Segments `.` and `..` would change the path of the request, empty ones are
 * lost by stores that use folders, and control characters have no form in XML 1.0.
 *
 * @throws ObjectStoreError `invalid_key`
 */
export function checkKey(key: string): void {
  const fault = faultOf(key);
  if (fault === undefined) return;
  throw new ObjectStoreError(
    "invalid_key",
    `Cannot use ${JSON.stringify(key)} as the name of an object: ${fault}`,
  );
}

function faultOf(key: string): string | undefined {
  if (!key.isWellFormed()) return "it is not well-formed Unicode";
  // U+FFFE and U+FFFF are not characters of XML either.
  // oxlint-disable-next-line no-control-regex
  if (/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffe\uffff]/.test(key)) return "it has a control character";
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `it is longer than ${MAX_KEY_BYTES} bytes`;
  for (const segment of key.split("/")) {
    if (segment === "") return "it has an empty segment";
    if (segment === "." || segment === "..") return "it has a segment '.' or '..'";
    if (Buffer.byteLength(segment) > MAX_SEGMENT_BYTES)
      return `it has a segment of more than ${MAX_SEGMENT_BYTES} bytes`;
  }
  return undefined;
}

/** Percent-encoding of SigV4: everything but letters, digits, `-`, `.`, `_` and `~`. */
export function encodeComponent(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Path of an object in a URL, without a leading slash. */
export function encodeKey(key: string): string {
  return key.split("/").map(encodeComponent).join("/");
}
