import type { ObjectType } from "../object-format.ts";

/** An object filter (git-rev-list, `--filter`); `combine` is the list of all that must hold. */
export type Filter =
  | { readonly kind: "blob-none" }
  /** Blobs of at least this many bytes are left out. */
  | { readonly kind: "blob-limit"; readonly bytes: number }
  /** Trees and blobs at least this deep below a commit are left out; a commit's own tree has depth 0. */
  | { readonly kind: "tree-depth"; readonly depth: number }
  | { readonly kind: "object-type"; readonly type: ObjectType };

/** More filters combined than this are not looked at. */
const MAX_FILTERS = 16;

/** Characters that must be escaped inside `combine:` (list-objects-filter-options.c, RESERVED_NON_WS). */
const RESERVED = /[^\u0021-\u007e]|[~`!@#$^&*()[\]{}\\;'",<>?]/u;

/**
 * Reads a filter specification.
 *
 * @returns the filters that must all hold; undefined for one that is malformed or not supported (`sparse:`)
 */
export function parseFilter(spec: string): readonly Filter[] | undefined {
  const filters = parse(spec, 0);
  return filters === undefined || filters.length > MAX_FILTERS ? undefined : filters;
}

function parse(spec: string, depth: number): Filter[] | undefined {
  if (spec === "blob:none") return [{ kind: "blob-none" }];
  const [, kind, value] = /^(blob:limit=|tree:|object:type=|combine:)(.+)$/su.exec(spec) ?? [];
  if (kind === undefined || value === undefined) return undefined;
  if (kind === "combine:") return depth < MAX_FILTERS ? parseCombined(value, depth) : undefined;
  if (kind === "object:type=") {
    return value === "commit" || value === "tree" || value === "blob" || value === "tag"
      ? [{ kind: "object-type", type: value }]
      : undefined;
  }
  const number = parseNumber(value);
  if (number === undefined) return undefined;
  return [kind === "tree:" ? { kind: "tree-depth", depth: number } : { kind: "blob-limit", bytes: number }];
}

function parseCombined(value: string, depth: number): Filter[] | undefined {
  const all: Filter[] = [];
  for (const part of value.split("+")) {
    if (RESERVED.test(part)) return undefined;
    let decoded: string;
    try {
      decoded = decodeURIComponent(part);
    } catch {
      return undefined;
    }
    const filters = parse(decoded, depth + 1);
    if (filters === undefined) return undefined;
    all.push(...filters);
  }
  return all;
}

/** As git_parse_ulong: decimal, octal or hexadecimal, and k, m or g for powers of 1024. */
function parseNumber(text: string): number | undefined {
  const [, octal, plain, unit] = /^(?:0([0-7]+)|(0x[0-9a-f]+|0|[1-9][0-9]*))([kmg]?)$/iu.exec(text) ?? [];
  const digits = octal === undefined ? plain : `0o${octal}`;
  if (digits === undefined) return undefined;
  const factor = 1024 ** ["", "k", "m", "g"].indexOf((unit ?? "").toLowerCase());
  const number = Number(digits) * factor;
  return Number.isSafeInteger(number) ? number : undefined;
}
