import { GitStoreError, type Lock, type Repository } from "@devplat/git-store";

/** Takes a lock. @returns undefined if another process or task has it */
export async function lockIfFree(repository: Repository, name: string): Promise<Lock | undefined> {
  try {
    return await repository.lock(name);
  } catch (error) {
    if (error instanceof GitStoreError && error.code === "locked") return undefined;
    throw error;
  }
}
