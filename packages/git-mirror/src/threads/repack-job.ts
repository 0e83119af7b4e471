import { ObjectDatabase, type PreparedRepack, type SharedDatabase } from "@devplat/git-store";
import { prepareRepack } from "@devplat/git-store/repack";

/** Merges packs into one in a temporary folder: those that the geometry selects, or all objects reachable from `keep`. */
export interface RepackJob {
  readonly kind: "repack";
  /** The repository's folder. */
  readonly path: string;
  readonly objects: SharedDatabase;
  /** Ids that get bitmaps. */
  readonly tips: readonly string[];
  /** Undefined: the geometry selects the packs. */
  readonly keep: readonly string[] | undefined;
  /** Minimum number of packs to merge, without `keep`. */
  readonly least: number;
}

/** Bytes of each cache during a repack. */
const CACHE_BYTES = 8 * 1024 * 1024;

export async function repackInThread(job: RepackJob): Promise<PreparedRepack | undefined> {
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
