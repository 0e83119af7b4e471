import { ProblemError } from "./problem.ts";

/**
 * A page of a sorted list. The cursor names the last item seen, so that records added or removed between two pages
 * neither repeat nor hide others.
 */
export function pageOf<T>(
  sorted: readonly T[],
  query: { readonly limit?: string | undefined; readonly cursor?: string | undefined },
  list: { readonly url: string; readonly key: (item: T) => string },
): { items: readonly T[]; headers: Record<string, string> } {
  const after = query.cursor === undefined ? undefined : decodeCursor(query.cursor);
  const rest = after === undefined ? sorted : sorted.filter((item) => list.key(item) > after);
  if (query.limit === undefined) return { items: rest, headers: {} };
  const items = rest.slice(0, Number(query.limit));
  const last = items.at(-1);
  if (last === undefined || items.length === rest.length) return { items, headers: {} };
  const next = new URLSearchParams({ limit: query.limit, cursor: encodeCursor(list.key(last)) });
  return { items, headers: { Link: `<${list.url}?${next.toString()}>; rel="next"` } };
}

function encodeCursor(key: string): string {
  return Buffer.from(key).toString("base64url");
}

function decodeCursor(cursor: string): string {
  const key = Buffer.from(cursor, "base64url").toString();
  if (encodeCursor(key) === cursor) return key;
  throw new ProblemError({
    status: 400,
    code: "bad_parameter",
    detail: 'Query parameter "cursor": take it from the Link header of the page before',
  });
}
