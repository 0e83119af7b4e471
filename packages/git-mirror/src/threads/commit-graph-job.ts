import { GitStoreError, type SharedDatabase } from "@devplat/git-store";
import { hasCommitsOfGraph } from "@devplat/git-store/connectivity";
import { attachPacks } from "./adoption-job.ts";

/** Checks whether a repository has all commits that its commit-graph names, without some of its packs. */
export interface CommitGraphJob {
  readonly kind: "commit_graph";
  readonly objects: SharedDatabase;
  /** Names of packs to leave out. */
  readonly without: readonly string[];
}

/** @returns false also if the commit-graph is damaged */
export function checkCommitGraph({ objects, without }: CommitGraphJob): boolean {
  const rest = attachPacks(objects, (name) => !without.includes(name));
  try {
    return hasCommitsOfGraph(rest);
  } catch (error) {
    if (error instanceof GitStoreError) return false;
    throw error;
  } finally {
    rest.close();
  }
}
