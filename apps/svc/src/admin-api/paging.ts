import { z } from "zod";
import { positionOf } from "../storage/time-cursor.ts";

const CURSOR = { description: "From the `Link` header of the page before" };
const CURSOR_FAULT = "must be from the Link header of the page before";
/** What lists are sorted by: an id, or an owner and a name of at most 100 characters each. */
const KEY = /^[\w./-]{1,201}$/;

/** The query parameters of a list that comes in pages. */
export const pagingQuery = {
  limit: z
    .string()
    .regex(/^(?:[1-9]\d{0,2}|1000)$/, "must be a number from 1 to 1000")
    .optional(),
  cursor: z
    .string()
    .refine((text) => keyOf(text) !== undefined, CURSOR_FAULT)
    .optional()
    .meta(CURSOR),
};

/** The same for lists whose pages the database cuts, ordered by time. */
export const timePagingQuery = {
  ...pagingQuery,
  cursor: z
    .string()
    .refine((text) => positionOf(text) !== undefined, CURSOR_FAULT)
    .optional()
    .meta(CURSOR),
};

/**
 * A page of a sorted list. The cursor names the last item seen, so that records added or removed between two pages
 * neither repeat nor hide others.
 */
export function pageOf<T>(
  sorted: readonly T[],
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
  list: {
    readonly url: string;
    /** What else the query asked for, to be asked for on the next page as well. */
    readonly filter?: Readonly<Record<string, string | undefined>>;
    readonly key: (item: T) => string;
    /** Whether the list is sorted by falling keys. Default false. */
    readonly descending?: boolean;
  },
): { items: readonly T[]; headers: Record<string, string> } {
  const after = query.cursor === undefined ? undefined : keyOf(query.cursor);
  const isLater = (key: string, than: string): boolean =>
    list.descending === true ? key < than : key > than;
  const rest = after === undefined ? sorted : sorted.filter((item) => isLater(list.key(item), after));
  if (query.limit === undefined) return { items: rest, headers: {} };
  const items = rest.slice(0, Number(query.limit));
  const last = items.at(-1);
  if (last === undefined || items.length === rest.length) return { items, headers: {} };
  const next = { ...list.filter, limit: query.limit, cursor: encodeCursor(list.key(last)) };
  return { items, headers: nextPage(list.url, next) };
}

/** The `Link` header (RFC 8288) that leads to the next page. */
export function nextPage(
  url: string,
  query: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { Link: `<${url}?${new URLSearchParams(given).toString()}>; rel="next"` };
}

function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** The key in a cursor; undefined: {@link pageOf} did not make it. */
function keyOf(cursor: string): string | undefined {
  const key = Buffer.from(cursor, "base64url").toString();
  return KEY.test(key) && encodeCursor(key) === cursor ? key : undefined;
}
