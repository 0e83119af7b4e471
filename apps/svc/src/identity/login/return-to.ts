/** Pages that a login may redirect to. A browser is never sent to another address. */
const PAGES = /^\/(?:admin|ui|auth\/device)(?:[/?]|$)/;
const HOME = "/ui";
/** Maximum characters of a path of this service. */
const MAX_LENGTH = 500;

/**
 * The path to redirect to after a login, from the `return_to` of a request: a page of this service, or `/ui`. The path is
 * parsed and built again, so absolute addresses, `//other.example` and `/\other.example` never pass.
 */
export function returnPath(asked: string | null | undefined): string {
  if (asked === null || asked === undefined || asked.length > MAX_LENGTH) return HOME;
  if (!/^\/[\x21-\x7e]*$/.test(asked) || asked.includes("\\")) return HOME;
  const base = "http://own.invalid";
  const url = URL.parse(asked, base);
  if (url === null || url.origin !== base) return HOME;
  const path = url.pathname + url.search;
  return PAGES.test(path) ? path : HOME;
}
