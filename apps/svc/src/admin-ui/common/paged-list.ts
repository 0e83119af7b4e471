import { html, type Html } from "@devplat/web-kit";

/** Entries of a list on one page. */
export const ENTRIES_PER_PAGE = 100;

/** The part of a list that a page shows. */
export interface PagedList<T> {
  readonly items: readonly T[];
  /** The search text; empty: none. */
  readonly search: string;
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  /** Number of items that match the search, over all pages. */
  readonly found: number;
  /** Number of all items. */
  readonly all: number;
}

export interface PagedListRequest {
  readonly search?: string | undefined;
  /** Number of a page, or id of an item that is to be on it. */
  readonly wanted?: number | string | undefined;
}

/**
 * The part of a list that a page shows. A number beyond the last page gives the last.
 *
 * @param textOf the searched text of an item; the case of letters does not matter
 */
export function pagedList<T extends { readonly id: string }>(
  all: readonly T[],
  textOf: (item: T) => string,
  { search = "", wanted }: PagedListRequest,
): PagedList<T> {
  const part = search.trim().toLowerCase();
  const found = part === "" ? all : all.filter((item) => textOf(item).toLowerCase().includes(part));
  const pages = Math.max(1, Math.ceil(found.length / ENTRIES_PER_PAGE));
  const index = found.findIndex(({ id }) => id === wanted);
  const asked = typeof wanted === "number" ? wanted : Math.floor(index / ENTRIES_PER_PAGE) + 1;
  const page = Math.min(Math.max(1, asked), pages);
  const from = (page - 1) * ENTRIES_PER_PAGE;
  const items = found.slice(from, from + ENTRIES_PER_PAGE);
  return { items, search: search.trim(), page, pages, found: found.length, all: all.length };
}

/** A page's number from an address; undefined: none. */
export function pageNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) : undefined;
}

/** Number of items, and of those that match the search. */
export function listCount({ search, found, all }: PagedList<unknown>): Html {
  return html`<span class="badge">${search === "" ? all : `${found} of ${all}`}</span>`;
}

export interface SearchOptions {
  /** Address of the page. */
  readonly path: string;
  /** The searched fields: `owner or name`. */
  readonly by: string;
}

/** A field to search in, where there is more than a page of entries. */
export function listSearch(list: PagedList<unknown>, { path, by }: SearchOptions): Html | string {
  if (list.all <= ENTRIES_PER_PAGE && list.search === "") return "";
  return html`<form class="cluster search" method="get" action="${path}" role="search">
    <label class="visually-hidden" for="search">Search by ${by}</label>
    <input id="search" name="search" type="search" value="${list.search}" placeholder="${by}" />
    <button class="small">Search</button>
    ${list.search === "" ? "" : html`<a class="button small" href="${path}">Clear</a>`}
  </form>`;
}

/** Links to the pages before and after, where there are any. @param to the address of a page */
export function listPager(
  { page, pages }: PagedList<unknown>,
  name: string,
  to: (page: number) => string,
): Html | string {
  if (pages === 1) return "";
  return html`<nav class="cluster pager" aria-label="${name}">
    ${page > 1 ? html`<a class="button small" href="${to(page - 1)}">Previous</a>` : ""}
    <span class="small muted">page ${page} of ${pages}</span>
    ${page < pages ? html`<a class="button small" href="${to(page + 1)}">Next</a>` : ""}
  </nav>`;
}
