import type { SeedFigures } from "@devplat/git-mirror";

/** Settings of a listed repository. A copy in memory, which changes here update immediately. */
export interface CachePolicy {
  readonly id: string;
  /** As the administrator wrote it; compare case-insensitively. */
  readonly owner: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Idle time-out towards the code host, in seconds, 1 to 3600. */
  readonly timeoutSeconds: number;
  /** Cap on the total size of the response files, in megabytes (2^20 bytes); undefined = none. */
  readonly maxCacheSizeMb: number | undefined;
  /** Whether seeds are made and sent. */
  readonly seed: boolean;
  /** Whether git is offered seeds as bundles. */
  readonly bundles: boolean;
}

/** Whether git is told that this repository has bundles. */
export function offersBundles({ enabled, seed, bundles }: CachePolicy): boolean {
  return enabled && seed && bundles;
}

const MEGABYTE = 1024 * 1024;

/** Maximum bytes of the stored responses of a repository. Infinity: no limit, or it is not listed. */
export function responseLimit(policy: Pick<CachePolicy, "maxCacheSizeMb"> | undefined): number {
  return (policy?.maxCacheSizeMb ?? Infinity) * MEGABYTE;
}

/** The list of cached repositories as the git routes see it. It does no I/O, because every git request reads it. */
export interface CachePolicies {
  /** Owner and name in any case, without `.git`. Undefined: not listed. */
  find(owner: string, name: string): CachePolicy | undefined;
  all(): readonly CachePolicy[];
}

/** Settings of a repository that is listed and enabled. Only its data may be fetched for the cache, and stored. */
export function enabledPolicy(
  policies: Pick<CachePolicies, "find">,
  { owner, name }: { readonly owner: string; readonly name: string },
): CachePolicy | undefined {
  const policy = policies.find(owner, name);
  return policy?.enabled === true ? policy : undefined;
}

/** Data of a repository in the bucket, as far as this process knows, and data that waits for its upload. */
export interface BucketFigures {
  /** Bytes of all objects that this service can use. Undefined: not known, because the store did not answer yet. */
  readonly sizeBytes: number | undefined;
  readonly responses: number;
  readonly packs: number;
  /** Uploads that wait or run. */
  readonly waiting: number;
  /** About. */
  readonly waitingBytes: number;
}

/** Statistics of a listed repository, for the record's `stats`. */
export interface CacheStats {
  /** Bytes on the local disk. */
  readonly sizeBytes: number;
  /** Undefined: there is no bucket. */
  readonly bucket: BucketFigures | undefined;
  readonly responseFiles: number;
  /** Number of them that are references to packs. */
  readonly references: number;
  /** Bytes of the responses that are kept framed, as they are sent. */
  readonly framedBytes: number;
  /** Bytes of the responses that are kept as references. Their files take next to nothing. */
  readonly referredBytes: number;
  readonly packs: number;
  /** Undefined: this instance has no seed of the repository. */
  readonly seed: SeedFigures | undefined;
  readonly hits: number;
  readonly misses: number;
  readonly bytesSaved: number;
  /** CPU seconds that clients did not spend on indexing: an estimate. */
  readonly secondsSaved: number;
  /** Milliseconds since the epoch; undefined = never. */
  readonly lastFetchAt: number | undefined;
  /** One sentence, no secret; undefined = none. */
  readonly lastError: string | undefined;
}

/** Whether a warming began: `started`, or why not. */
export type WarmStart = "started" | "no_credential" | "not_cached";

/** Operations of the administration on the cache of one repository. */
export interface CacheMaintenance {
  stats(owner: string, name: string): CacheStats;
  /**
   * Reads figures that are not known yet or old, for a short time. Never rejects.
   *
   * @param only the repository. Default all
   */
  look(only?: { readonly owner: string; readonly name: string }): Promise<void>;
  /**
   * Makes the stored data invalid on every instance, then removes it in the background. A crash does not stop that for good.
   * Running requests complete.
   *
   * @throws SvcError `database_unavailable`
   */
  purge(owner: string, name: string): Promise<void>;
  /**
   * Waits until the data of a purged repository is removed on this instance and in the bucket. Never rejects.
   *
   * @param ms maximum time to wait
   */
  isPurged(owner: string, name: string, ms: number): Promise<boolean>;
  /** Starts a fetch of new objects of the code host. The result says whether that is possible. */
  warm(owner: string, name: string): Promise<WarmStart>;
}
