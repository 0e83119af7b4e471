import { encodeCursor, keyOf } from "../administration/paging.ts";

/**
 * A page of a sorted list. The cursor names the last item of the page before, so that records that are added or removed
 * between two pages neither repeat nor hide others.
 */
export function pageOf<T>(
  sorted: readonly T[],
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
  list: {
    readonly url: string;
    /** Other parameters of the query, which the next page needs as well. */
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
