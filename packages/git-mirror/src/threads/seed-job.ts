import { ObjectDatabase, type SharedDatabase } from "@devplat/git-store";
import { prepareSeed, type PreparedSeed, type SeedOptions } from "@devplat/git-store/seed";

/** Makes the files of a seed in a folder. */
export interface SeedJob extends Pick<SeedOptions, "shown" | "last" | "minShare"> {
  readonly kind: "seed";
  readonly objects: SharedDatabase;
  /** An empty folder on the file system of the packs. */
  readonly folder: string;
}

/** Bytes of each cache. */
const CACHE_BYTES = 8 * 1024 * 1024;

export async function makeSeedInThread(job: SeedJob): Promise<PreparedSeed | undefined> {
  const { shown, last, minShare } = job;
  const memory = { pageCacheBytes: CACHE_BYTES, baseCacheBytes: CACHE_BYTES };
  const objects = ObjectDatabase.attach(job.objects, memory);
  try {
    return await prepareSeed(job.folder, objects, { shown, last, minShare, cacheBytes: CACHE_BYTES });
  } finally {
    objects.close();
  }
}
