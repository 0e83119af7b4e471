import type { Logger } from "@devplat/base";
import type { RepositoryId, RepositoryStorage } from "@devplat/git-mirror";
import type { CachedRepository } from "../cached-repository.ts";

export type SeedRemovalReason = "they are switched off" | "cache.max_total_size_mb is reached";

export interface SeedRemovalParts {
  readonly storage: { repository(id: RepositoryId): Pick<RepositoryStorage, "removeSeeds"> };
  readonly logger: Logger;
}

/** Removes all seeds of a repository, and logs why. */
export async function removeSeeds(
  { storage, logger }: SeedRemovalParts,
  repository: CachedRepository,
  reason: SeedRemovalReason,
): Promise<void> {
  const seeds = await storage.repository(repository.id).removeSeeds();
  repository.seedsRemoved();
  if (seeds > 0) logger.info({ repo: repository.id.key, seeds }, `removed seeds: ${reason}`);
}
