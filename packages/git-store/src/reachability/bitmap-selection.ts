import type { CommitColumns } from "./commit-columns.ts";

/** Number of commits between two selected commits near a tip. */
const SPACING = 100;
/** Spacing far from the tip, as a share of the distance to it. Few clients are that far behind. */
const SPACING_SHARE = 1 / 20;

/**
 * Selects commits that get bitmaps, along the first parents of some tips. The intervals grow with the distance to the
 * tip: about 75 commits for a history of 30,000. A walk from any commit soon meets one. Each line of first parents
 * ends where it joins another one.
 */
export function selectBitmapCommits(commits: CommitColumns, tips: Iterable<number>): number[] {
  const seen = new Set<number>();
  const found: number[] = [];
  // Starts with the newest tip: its line is complete, and the others end where they join it.
  for (const tip of [...tips].toSorted((a, b) => commits.levelOf(b) - commits.levelOf(a))) {
    let next = SPACING;
    let row = tip;
    for (let distance = 0; !seen.has(row); distance++) {
      seen.add(row);
      if (distance === next) {
        found.push(row);
        next += Math.max(SPACING, Math.floor(distance * SPACING_SHARE));
      }
      const first = commits.parentsFrom(row);
      if (first === commits.parentsFrom(row + 1)) break;
      row = commits.parentAt(first);
    }
  }
  return found;
}
