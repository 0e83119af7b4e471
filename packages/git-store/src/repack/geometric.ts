/** A pack must hold this many times the objects of all later ones, or it is merged with them (git's usual `--geometric=2`). */
export const GEOMETRIC_FACTOR = 2;

/**
 * Which packs to merge so that the numbers of objects form a geometric progression: from the returned place to the end
 * of the list. What stays at the front keeps its order, and with it the numbers that bitmaps are made of.
 *
 * Each object is then rewritten at most once per doubling of the store, and a store of n objects has about log2(n) packs.
 *
 * @param counts objects per pack, oldest first
 * @returns the number of packs that stay; `counts.length` when the progression holds
 */
export function keptPacks(counts: readonly number[], factor: number = GEOMETRIC_FACTOR): number {
  let later = 0;
  let kept = counts.length;
  // From the newest: wherever a pack is too small for what follows it, all from there on become one.
  for (let at = counts.length - 1; at >= 0; at--) {
    if (counts[at]! < factor * later) kept = at;
    later += counts[at]!;
  }
  return kept;
}
