import { GitStoreError, ObjectDatabase, type Pack, type SharedDatabase } from "@devplat/git-store";
import { checkPackConnected } from "@devplat/git-store/connectivity";

/** Checks whether a repository that has adopted packs is complete without some of its packs. */
export interface AdoptionJob {
  readonly kind: "adoption";
  readonly objects: SharedDatabase;
  /** Names of packs that are complete together: they have everything that their objects refer to. */
  readonly complete: readonly string[];
  /** Names of packs to leave out. */
  readonly without: readonly string[];
}

export interface AdoptionReport {
  /** Whether all packs but those to leave out are complete together. */
  readonly isComplete: boolean;
  /** Names of packs that have only objects of the `complete` packs. */
  readonly redundant: readonly string[];
}

/** Bytes of each cache of this job, as in connectivity-job.ts. */
const CACHE_BYTES = 8 * 1024 * 1024;
const MEMORY = { pageCacheBytes: CACHE_BYTES, baseCacheBytes: CACHE_BYTES };

export function checkAdoption({ objects, complete, without }: AdoptionJob): AdoptionReport {
  const base = attachPacks(objects, (name) => complete.includes(name));
  const all = attachPacks(objects, (name) => !without.includes(name));
  try {
    const others = all.packs.filter(({ name }) => !complete.includes(name));
    const redundant = others.filter((pack) => isIn(base, pack));
    const isComplete = others.every((pack) => redundant.includes(pack) || isConnected(all, pack));
    return { isComplete, redundant: redundant.map(({ name }) => name) };
  } finally {
    base.close();
    all.close();
  }
}

/** Opens those packs of a database that are wanted by their names. */
export function attachPacks(objects: SharedDatabase, isWanted: (name: string) => boolean): ObjectDatabase {
  const packs = objects.packs.filter(({ path }) => isWanted(nameOf(path)));
  return ObjectDatabase.attach({ ...objects, packs }, MEMORY);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1, -".pack".length);
}

function isIn(base: ObjectDatabase, pack: Pack): boolean {
  for (let position = 0; position < pack.count; position++) {
    const at = pack.oidStartAt(position);
    if (!base.packs.some((one) => one.find(pack.index.bytes, at) >= 0)) return false;
  }
  return true;
}

function isConnected(objects: ObjectDatabase, pack: Pack): boolean {
  try {
    checkPackConnected(objects, pack);
    return true;
  } catch (error) {
    if (error instanceof GitStoreError && error.code === "missing_object") return false;
    throw error;
  }
}
