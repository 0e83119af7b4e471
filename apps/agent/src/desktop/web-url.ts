/** Longest address, in bytes. It fits into one argument of a program (128 KiB on Linux), together with the rest of the argument. */
export const MAX_URL_BYTES = 16 * 1024;

/**
 * Whether an address may be handed to the system's opener: http or https, with a host, without user name and
 * password. Everything else (files, programs' own schemes) could start anything.
 *
 * @returns the address, with characters that RFC 3986 does not allow percent-encoded; or its fault, as the
 *   end of a sentence that does not quote it
 */
export function parseWebUrl(text: string): { readonly url: string } | { readonly fault: string } {
  if (Buffer.byteLength(text) > MAX_URL_BYTES) return { fault: "is longer than 16 KiB" };
  // URL parsers drop or turn round these: what was checked would not be what is opened.
  if (/[\s\\\p{Cc}]/u.test(text) || !text.isWellFormed()) {
    return { fault: "holds a blank, a backslash or a control character" };
  }
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined) return { fault: "is not an http or https address" };
  if (authority.includes("@")) return { fault: "holds a user name or password" };
  const parsed = URL.parse(text);
  // With nothing before the path, parsers take the path's first part for the host.
  if (authority === "" || parsed === null) return { fault: "has no host, or is not an address" };
  return { url: /^[\w.~:/?#[\]@!$&'()*+,;=%-]+$/.test(text) ? text : parsed.href };
}
