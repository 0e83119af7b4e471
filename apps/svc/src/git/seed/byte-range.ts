/** Part of a file that a request asks for. */
export type RequestedPart =
  | { readonly kind: "whole" }
  /** `end` is exclusive. */
  | { readonly kind: "part"; readonly start: number; readonly end: number }
  | { readonly kind: "unsatisfiable" }
  /** The client has the file. */
  | { readonly kind: "unchanged" };

/** One range of bytes (RFC 9110, section 14.1.2). A number of more than 15 digits is not the size of a file. */
const ONE_RANGE = /^bytes=[ \t]*(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))[ \t]*$/i;

/** Headers of a request that choose a part of a file. */
export interface PartHeaders {
  readonly range?: string | undefined;
  readonly "if-range"?: string | string[] | undefined;
  readonly "if-none-match"?: string | undefined;
}

/**
 * The part of a file that a request asks for. Several ranges, and ranges that cannot be read, are ignored, as RFC 9110 allows.
 *
 * @param etag strong, with its quotes
 */
export function requestedPart(headers: PartHeaders, size: number, etag: string): RequestedPart {
  const known = headers["if-none-match"];
  if (known !== undefined && namesTag(known, etag)) return { kind: "unchanged" };
  const { range } = headers;
  if (range === undefined) return { kind: "whole" };
  // A date is never the validator of these files, and a weak tag does not match.
  if (headers["if-range"] !== undefined && headers["if-range"] !== etag) return { kind: "whole" };
  const found = ONE_RANGE.exec(range);
  if (found === null) return { kind: "whole" };
  const [, first, last, suffix] = found;
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? { kind: "unsatisfiable" } : { kind: "part", start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === undefined ? size : Math.min(Number(last) + 1, size);
  if (last !== undefined && Number(last) < start) return { kind: "whole" };
  return start >= size ? { kind: "unsatisfiable" } : { kind: "part", start, end };
}

/** Whether a list of tags has this one, by the weak comparison of `If-None-Match`. */
function namesTag(list: string, etag: string): boolean {
  if (list.trim() === "*") return true;
  return list.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}
