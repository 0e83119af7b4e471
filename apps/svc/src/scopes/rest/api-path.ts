/** A parsed path of the API. */
export interface ApiPath {
  /** Decoded; the first after the leading slash. */
  readonly segments: readonly string[];
  /** The same with encoded slashes as separators; equal to `segments` where there are none. */
  readonly unfolded: readonly string[];
  /** Rebuilt from the segments, for the request to the code host. */
  readonly normalised: string;
}

/**
 * Reads a path below the API's base: percent-encoding is undone once; dot segments, empty segments, backslashes and
 * control characters are refused, also behind encoded slashes.
 *
 * @returns a sentence about the fault
 */
export function parseApiPath(path: string): ApiPath | string {
  if (path === "" || path === "/") return { segments: [], unfolded: [], normalised: "/" };
  if (!path.startsWith("/")) return "the request target is not a path";
  const segments: string[] = [];
  for (const raw of path.slice(1).split("/")) {
    try {
      segments.push(decodeURIComponent(raw));
    } catch {
      return "the path has a malformed percent-encoding";
    }
  }
  const unfolded = segments.flatMap((segment) => segment.split("/"));
  for (const part of unfolded) {
    if (part === "") return "the path has an empty segment";
    if (part === "." || part === "..") return "the path has a dot segment";
    // A second decoding by a server behind this one must change nothing.
    if (/%(?:2e|2f|5c|00)/i.test(part)) return "the path is encoded twice";
    // eslint-disable-next-line no-control-regex
    if (/[\u0000-\u001f\u007f\\;]/.test(part)) return "the path has a character that is not allowed";
  }
  return { segments, unfolded, normalised: `/${segments.map(encodeSegment).join("/")}` };
}

/** As `encodeURIComponent`, but readable where RFC 3986 lets it be (pchar). */
function encodeSegment(text: string): string {
  return encodeURIComponent(text).replaceAll(/%(?:3A|40|24|26|2B|2C|3D)/g, decodeURIComponent);
}
