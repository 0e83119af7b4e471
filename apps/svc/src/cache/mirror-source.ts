import type { RepositoryId } from "../access/repository-id.ts";

/** Packs that several instances share. They are asked before the code host. */
export interface MirrorSource {
  /**
   * Brings a mirror up to date. Requests for one repository share a transfer. It goes on when no request waits for it any more.
   * Never rejects.
   *
   * @param waitMs maximum time to wait; a slow transfer is not waited for that long
   * @returns whether the mirror has objects or refs that it did not have
   */
  refresh(id: RepositoryId, waitMs: number): Promise<boolean>;
}
