/**
 * Fault of a request target, or undefined. Paths are never normalised. A path that another program could read in another
 * way is refused (RFC 9112 section 3.2, RFC 3986 section 6.2.2).
 *
 * @param target the raw target of the request line
 * @returns a short reason that does not quote the target
 */
export function targetFault(target: string): string | undefined {
  if (!target.startsWith("/")) return "the request target is not a path";
  const path = target.split("?", 1)[0] ?? "";
  // Only printable ASCII is allowed. Node passes other bytes on as Latin-1.
  if (!/^[\x21-\x7e]*$/.test(target)) return "the request target holds bytes that must be percent-encoded";
  if (path.includes("\\") || /%(?:2f|5c|00)/i.test(path))
    return "the path holds a backslash, an encoded slash or NUL";
  if (path.includes("//")) return "the path holds an empty segment";
  if (/%(?![0-9a-f]{2})/i.test(path)) return "the path holds an invalid percent-encoding";
  const dotted = path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  return dotted ? "the path holds a . or .. segment" : undefined;
}
