import type { ObjectType } from "../object-format.ts";

/** An object filter (git-rev-list, `--filter`). */
export type Filter = SimpleFilter | CombinedFilter;

export type SimpleFilter =
  | { readonly kind: "blob-none" }
  /** Excludes blobs of at least this many bytes. */
  | { readonly kind: "blob-limit"; readonly bytes: number }
  /** Excludes trees and blobs at least this deep below a commit. The root tree has depth 0. */
  | { readonly kind: "tree-depth"; readonly depth: number }
  | { readonly kind: "object-type"; readonly type: ObjectType };

/** Combination of filters. An object must pass all of them, each with its own state: see `combined-filter.ts`. */
export interface CombinedFilter {
  readonly kind: "combine";
  readonly filters: readonly Filter[];
}

/** Maximum number of filters in one specification, including every `combine`. Each needs one bit of a 32-bit mask. */
const MAX_FILTERS = 24;

/** Characters that must be escaped inside `combine:` (list-objects-filter-options.c, RESERVED_NON_WS). */
const RESERVED = /[^\u0021-\u007e]|[~`!@#$^&*()[\]{}\\;'",<>?]/u;

/**
 * Parses a filter specification.
 *
 * @returns undefined when it is malformed or not supported (`sparse:`)
 */
export function parseFilter(spec: string): Filter | undefined {
  const filter = parse(spec, 0);
  return filter === undefined || countOf(filter) > MAX_FILTERS ? undefined : filter;
}

/** Returns the simple filters of a filter. */
export function simpleFilters(filter: Filter): readonly SimpleFilter[] {
  return filter.kind === "combine" ? filter.filters.flatMap((part) => simpleFilters(part)) : [filter];
}

function countOf(filter: Filter): number {
  if (filter.kind !== "combine") return 1;
  return filter.filters.reduce((sum, part) => sum + countOf(part), 1);
}

function parse(spec: string, depth: number): Filter | undefined {
  if (spec === "blob:none") return { kind: "blob-none" };
  const [, kind, value] = /^(blob:limit=|tree:|object:type=|combine:)(.+)$/su.exec(spec) ?? [];
  if (kind === undefined || value === undefined) return undefined;
  if (kind === "combine:") return depth < MAX_FILTERS ? parseCombined(value, depth) : undefined;
  if (kind === "object:type=") {
    return value === "commit" || value === "tree" || value === "blob" || value === "tag"
      ? { kind: "object-type", type: value }
      : undefined;
  }
  const number = parseNumber(value);
  if (number === undefined) return undefined;
  return kind === "tree:" ? { kind: "tree-depth", depth: number } : { kind: "blob-limit", bytes: number };
}

function parseCombined(value: string, depth: number): CombinedFilter | undefined {
  const filters: Filter[] = [];
  for (const part of value.split("+")) {
    if (RESERVED.test(part)) return undefined;
    let decoded: string;
    try {
      decoded = decodeURIComponent(part);
    } catch {
      return undefined;
    }
    const filter = parse(decoded, depth + 1);
    if (filter === undefined) return undefined;
    filters.push(filter);
  }
  return { kind: "combine", filters };
}

/** Parses a number like git_parse_ulong: decimal, octal or hexadecimal, and k, m or g for powers of 1024. */
function parseNumber(text: string): number | undefined {
  const [, octal, plain, unit] = /^(?:0([0-7]+)|(0x[0-9a-f]+|0|[1-9][0-9]*))([kmg]?)$/iu.exec(text) ?? [];
  const digits = octal === undefined ? plain : `0o${octal}`;
  if (digits === undefined) return undefined;
  const factor = 1024 ** ["", "k", "m", "g"].indexOf((unit ?? "").toLowerCase());
  const number = Number(digits) * factor;
  return Number.isSafeInteger(number) ? number : undefined;
}
