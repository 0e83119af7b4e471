/**
 * Minimum ratio of a pack's objects to the objects of all later packs. A smaller pack is merged with them
 * (`git repack --geometric=2`).
 */
export const GEOMETRIC_FACTOR = 2;

/**
 * Selects the packs to merge, so that their object counts form a geometric progression: all packs from the returned
 * position on. The packs before it keep their order, so the object numbers in bitmaps stay valid.
 *
 * An object is rewritten at most once each time the store doubles. A store of n objects has about log2(n) packs.
 *
 * @param counts objects per pack, oldest first
 * @returns number of packs to keep; `counts.length` when the progression holds
 */
export function keptPacks(counts: readonly number[], factor: number = GEOMETRIC_FACTOR): number {
  let later = 0;
  let kept = counts.length;
  // Starts at the newest pack. If a pack is too small for its successors, it is merged with all of them.
  for (let at = counts.length - 1; at >= 0; at--) {
    if (counts[at]! < factor * later) kept = at;
    later += counts[at]!;
  }
  return kept;
}
