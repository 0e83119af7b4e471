import type { RepositoryId } from "../../../access/repository-id.ts";

/** Says whether this instance does the work that one instance does for each repository: repacks, collection, size limits. */
export interface Maintainer {
  /**
   * Takes or keeps the lease of a repository.
   *
   * @returns fencing number for writes of the manifest, 0 without a lease; undefined: another instance does the work
   */
  mayMaintain(id: RepositoryId): Promise<number | undefined>;
}

/** The only instance of its bucket. */
export const SOLE_MAINTAINER: Maintainer = { mayMaintain: () => Promise.resolve(0) };
