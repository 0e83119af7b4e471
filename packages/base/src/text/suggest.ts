import { closestMatch } from "leven";

/** Known word that is closest to a misspelt one, without regard to case. Maximum edit distance: 2, for up to 3 letters 1. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const folded = known.map((each) => each.toLowerCase());
  // A letter left out inside a word is more likely than one added before it: umount means unmount, not mount.
  const longer = folded.findIndex((each) => isOneLetterLonger(word.toLowerCase(), each));
  if (longer >= 0 && !folded.includes(word.toLowerCase())) return known[longer];
  const closest = closestMatch(word.toLowerCase(), folded, { maxDistance: word.length <= 3 ? 1 : 2 });
  return closest === undefined ? undefined : known[folded.indexOf(closest)];
}

/** Whether `long` is `short` with one letter more inside. */
function isOneLetterLonger(short: string, long: string): boolean {
  if (long.length !== short.length + 1) return false;
  for (let at = 1; at < short.length; at++) {
    if (short.slice(0, at) === long.slice(0, at) && short.slice(at) === long.slice(at + 1)) return true;
  }
  return false;
}
