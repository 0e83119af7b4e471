import { GitStoreError } from "../errors.ts";
import { hasBit, type Bitset } from "../reachability/bitset.ts";
import type { CommitColumns } from "../reachability/commit-columns.ts";
import { CommitQueue } from "../reachability/commit-queue.ts";

/** Depth that means the complete history (shallow.h, INFINITE_DEPTH). */
export const INFINITE_DEPTH = 0x7fff_ffff;

/** Boundary of a shallow history, as rows of commits. */
export interface Boundary {
  /** Commits whose parents are not sent, in git's order. A commit may occur twice. */
  readonly shallow: readonly number[];
  /** Commits whose parents are sent. */
  readonly notShallow: ReadonlySet<number>;
}

/**
 * Computes the boundary at `depth` commits from the heads, which have depth 1 (git: shallow.c, get_shallow_commits).
 * A commit is in both lists if a shorter path to it was found later. It is then not shallow.
 *
 * @param isEnd tells whether a row is shallow at any depth
 */
export function boundaryByDepth(
  commits: CommitColumns,
  heads: readonly number[],
  depth: number,
  isEnd: (row: number) => boolean = (row) => commits.isCutAt(row),
): Boundary {
  const shallow: number[] = [];
  const notShallow = new Set<number>();
  const depths = new Map<number, number>();
  const stack: number[] = [];
  let next = 0;
  let row: number | undefined;
  let current = 0;
  for (;;) {
    if (row === undefined) {
      if (next < heads.length) {
        row = heads[next++]!;
        depths.set(row, 0);
        current = 0;
      } else {
        row = stack.pop();
        if (row === undefined) break;
        current = depths.get(row)!;
      }
    }
    current++;
    if ((depth < INFINITE_DEPTH && current >= depth) || isEnd(row)) {
      shallow.push(row);
      row = undefined;
      continue;
    }
    notShallow.add(row);
    const end = commits.parentsFrom(row + 1);
    const start = commits.parentsFrom(row);
    row = undefined;
    for (let i = start; i < end; i++) {
      const parent = commits.parentAt(i);
      const known = depths.get(parent);
      if (known !== undefined && current >= known) continue;
      depths.set(parent, current);
      if (i + 1 < end) stack.push(parent);
      else row = parent;
    }
    if (row !== undefined) current = depths.get(row)!;
  }
  return { shallow: shallow.toReversed(), notShallow };
}

/**
 * Computes the boundary of the commits that are reachable from the heads, not older than `since` and not in `excluded`
 * (git: shallow.c, get_shallow_commits_by_rev_list, with `rev-list --max-age`). A commit is on the boundary if a parent
 * is left out. Ancestors of a commit that is too old are left out, regardless of their dates.
 *
 * @param since seconds since the epoch; undefined for no limit
 * @param excluded object numbers to leave out; closed under reachability
 * @throws {GitStoreError} `unservable` when no commit remains
 */
export function boundaryBySelection(
  commits: CommitColumns,
  heads: readonly number[],
  since: number | undefined,
  excluded: Bitset,
): Boundary {
  const selected = new Set<number>();
  const leftOut = new Set<number>();
  const queue = CommitQueue.byLevel(commits);
  for (const head of heads) queue.push(head);
  // By level: the descendants of a commit come before it, and decide whether it is left out.
  const seen = new Set<number>();
  for (let row = queue.pop(); row !== undefined; row = queue.pop()) {
    if (seen.has(row)) continue;
    seen.add(row);
    if (hasBit(excluded, commits.numberOf(row))) continue;
    const old = since !== undefined && commits.timeOf(row) < since;
    if (!old && !leftOut.has(row)) selected.add(row);
    else leftOut.add(row);
    for (let i = commits.parentsFrom(row); i < commits.parentsFrom(row + 1); i++) {
      const parent = commits.parentAt(i);
      if (leftOut.has(row)) leftOut.add(parent);
      queue.push(parent);
    }
  }
  if (selected.size === 0) {
    throw new GitStoreError("unservable", "select a shallow history: no commit is left");
  }
  const shallow: number[] = [];
  const notShallow = new Set<number>();
  for (const row of selected) {
    let atEdge = commits.isCutAt(row);
    for (let i = commits.parentsFrom(row); i < commits.parentsFrom(row + 1); i++) {
      if (!selected.has(commits.parentAt(i))) atEdge = true;
    }
    if (atEdge) shallow.push(row);
    else notShallow.add(row);
  }
  return { shallow, notShallow };
}
