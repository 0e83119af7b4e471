import { closestMatch } from "leven";

/** Known word that is closest to a misspelt one, without regard to case. Maximum edit distance: 2, for up to 3 letters 1. */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const folded = known.map((each) => each.toLowerCase());
  const closest = closestMatch(word.toLowerCase(), folded, { maxDistance: word.length <= 3 ? 1 : 2 });
  return closest === undefined ? undefined : known[folded.indexOf(closest)];
}
