/** Maximum names in a message, so that it stays readable. */
const MAX_NAMES = 10;

/** Sorted names for a message: `a, b, c and 4 more`. Before output to a terminal, the caller must escape them. */
export function nameList(names: Iterable<string>): string {
  const sorted = [...names].toSorted();
  const more = sorted.length - MAX_NAMES;
  const shown = sorted.slice(0, MAX_NAMES).join(", ");
  return more > 0 ? `${shown} and ${more} more` : shown;
}
