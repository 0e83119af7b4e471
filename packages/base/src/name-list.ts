/** More names than this make a message hard to read. */
const MAX_NAMES = 10;

/** Names for a message, sorted: `a, b, c and 4 more`. For a terminal the caller must make them visible. */
export function nameList(names: Iterable<string>): string {
  const sorted = [...names].toSorted();
  const more = sorted.length - MAX_NAMES;
  const shown = sorted.slice(0, MAX_NAMES).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
