import type { CommitColumns } from "./commit-columns.ts";

/** Commits between two milestones near a tip. */
const SPACING = 100;
/** Further from the tip, milestones are this share of the distance apart: clients rarely stand there. */
const SPACING_SHARE = 1 / 20;

/**
 * Commits along the first parents of some tips, at intervals that grow with the distance: about 75 for a history of
 * 30,000. From any commit near them the way to the next one is short. A branch counts until it meets another's.
 */
export function selectBitmapCommits(commits: CommitColumns, tips: Iterable<number>): number[] {
  const seen = new Set<number>();
  const found: number[] = [];
  // Newest first: the longest line is taken whole, and the others up to where they meet it.
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
