import { closestMatch } from "leven";

/** The known word that was probably meant, in any letter case: at an edit distance of at most 2 (1 for up to 3 letters). */
export function suggest(word: string, known: readonly string[]): string | undefined {
  const folded = known.map((each) => each.toLowerCase());
  const closest = closestMatch(word.toLowerCase(), folded, { maxDistance: word.length <= 3 ? 1 : 2 });
  return closest === undefined ? undefined : known[folded.indexOf(closest)];
}
