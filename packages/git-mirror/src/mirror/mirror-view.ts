import { ReachableSet, type ObjectGraph, type Ref } from "@devplat/git-store";

/** Objects and refs of a mirror at one time. The caller must release it. */
export interface MirrorView {
  readonly graph: ObjectGraph;
  /** Refs after the latest fill. */
  readonly refs: ReadonlyMap<string, Ref>;
  release(): void;
}

/**
 * Whether the histories of two sets of objects have a commit in common. Ids that are not in the mirror are skipped.
 */
export async function shareHistory(
  { graph }: MirrorView,
  some: Iterable<string>,
  others: Iterable<string>,
): Promise<boolean> {
  const first = await ReachableSet.of(graph, some, { commitsOnly: true });
  return first.sharesCommits(await ReachableSet.of(graph, others, { commitsOnly: true }));
}
