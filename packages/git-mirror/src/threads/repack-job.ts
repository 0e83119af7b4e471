import { ObjectDatabase, prepareRepack, type PreparedRepack, type SharedDatabase } from "@devplat/git-store";

/** Packs of a store: merges those that geometry asks for, or all that `keep` reaches, into one that stands aside. */
export interface ConsolidateJob {
  readonly kind: "consolidate";
  /** The repository's folder. */
  readonly path: string;
  readonly objects: SharedDatabase;
  /** Ids that get bitmaps. */
  readonly tips: readonly string[];
  readonly keep: readonly string[] | undefined;
  /** Packs to merge at least, without `keep`. */
  readonly least: number;
}

/** Bytes of each cache while packs are merged. */
const CACHE_BYTES = 8 * 1024 * 1024;

export async function consolidate(job: ConsolidateJob): Promise<PreparedRepack | undefined> {
  const memory = { pageCacheBytes: CACHE_BYTES, baseCacheBytes: CACHE_BYTES };
  const objects = ObjectDatabase.attach(job.objects, memory);
  try {
    return await prepareRepack(job.path, objects, {
      tips: job.tips,
      least: job.least,
      cacheBytes: CACHE_BYTES,
      ...(job.keep === undefined ? {} : { keep: job.keep }),
    });
  } finally {
    objects.close();
  }
}
