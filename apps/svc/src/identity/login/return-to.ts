/** Where a login may lead back to; everything else is not ours to send a browser to. */
const PAGES = /^\/(?:admin|ui|auth\/device)(?:[/?]|$)/;
const HOME = "/ui";
/** Maximum characters of a path of this service. */
const MAX_LENGTH = 500;

/**
 * The path to go on with after a login, out of what a request asked for: a page of ours, or `/ui`. An absolute address,
 * `//other.example`, `/\other.example` and their kin never come through, as the path is taken apart and put together anew.
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
