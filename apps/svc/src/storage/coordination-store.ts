/*
 * Data with which several instances on one database coordinate. Times are measured by the clock of the database where it
 * has one, so clocks of the instances may differ by any amount. Records give ages, never times of other machines.
 */

/** A lease that was acquired. */
export interface Lease {
  readonly name: string;
  readonly holder: string;
  /**
   * Fencing number. Each acquisition by another holder gets a higher one, also after the database was restored from a
   * backup. What the holder writes elsewhere carries it, so that a write of a former holder can be refused.
   */
  readonly fence: number;
}

/** Work that one instance does at a time. A lease ends by itself, so a holder that died is not waited for long. */
export interface LeaseStore {
  /**
   * Takes the lease, or extends it if the holder has it already: then the fencing number stays.
   *
   * @param ttlMs until the lease ends by itself, from now
   * @returns undefined: another holder has it
   */
  acquire(name: string, holder: string, ttlMs: number): Promise<Lease | undefined>;
  /** Extends a lease, also one whose time is over. False: it was released, or somebody has acquired it since. */
  renew(lease: Lease, ttlMs: number): Promise<boolean>;
  /** Nothing happens if somebody has acquired it since. */
  release(lease: Lease): Promise<void>;
  /** Deletes leases that ended that long ago. */
  deleteEnded(olderThanMs: number): Promise<number>;
}

/**
 * Epochs of repositories. An epoch says which stored data is valid: data of a lower epoch was purged. Epochs outlive the
 * record of the repository, and they only grow. 0 is the epoch of a repository that was never purged.
 *
 * An epoch is a time in milliseconds, or one more than the previous epoch. So a new one is higher than all that exist,
 * also after the database was restored from a backup. Keys are made by `repositoryKey`.
 */
export interface EpochStore {
  get(key: string): Promise<number>;
  /** Gives the repository a higher epoch. @returns that epoch */
  raise(key: string): Promise<number>;
  /** Raises the epoch to a number that was seen elsewhere, if that is higher. @returns the epoch after it */
  adopt(key: string, atLeast: number): Promise<number>;
  /** All epochs above 0, by key. */
  all(): Promise<ReadonlyMap<string, number>>;
}

/** Subjects whose changes each instance must learn about soon. */
export type ChangeTopic = "repositories" | "epochs";

/** Number of changes of each subject since the database was made. */
export type ChangeCounts = Readonly<Record<ChangeTopic, number>>;

/** Tells instances that data changed which they keep in memory. Writers count their changes in the same transaction. */
export interface ChangeStore {
  /** One small read, made every second. */
  counts(): Promise<ChangeCounts>;
  /**
   * Reports changes until the signal fires, as far as the database can report them by itself. Reports may be missing:
   * {@link counts} decides. Never rejects.
   *
   * @param onChange may be called more often than something changes
   */
  listen(onChange: () => void, signal: AbortSignal): Promise<void>;
}

/** An instance that uses this database. */
export interface InstanceRecord {
  readonly id: string;
  readonly hostName: string;
  /** Address at which it listens, such as `host:8080`. Undefined: an earlier version did not report it. */
  readonly address: string | undefined;
  readonly version: string;
  /** Id of the key of its manifests. Undefined: it has no bucket. */
  readonly manifestKeyId: string | undefined;
  /** JSON text, made by `settingsDigests`. Undefined: an earlier version did not report it. */
  readonly settingsDigests: string | undefined;
  /** Whether it takes requests. */
  readonly ready: boolean;
}

/** An instance as the database knows it. */
export interface ReportedInstance extends InstanceRecord {
  /** Milliseconds since its first report. */
  readonly uptimeMs: number;
  /** Milliseconds since its last report. */
  readonly reportAgeMs: number;
  /** JSON text; undefined: none was stored yet. */
  readonly figures: string | undefined;
  /** Milliseconds since the figures were stored. */
  readonly figuresAgeMs: number | undefined;
}

export interface InstanceStore {
  /**
   * Adds an instance before it uses the database, so that a restore finds it.
   *
   * @returns whether the instance is on the list now
   * @throws SvcError `database_unavailable`: a restore has begun, and did not end while this waited
   */
  register(record: InstanceRecord): Promise<boolean>;
  /**
   * Adds the instance, or brings its record up to date.
   *
   * @throws SvcError `database_unavailable`: a restore has begun, and did not end while this waited
   */
  report(record: InstanceRecord): Promise<void>;
  /** Stores figures of an instance that has reported. @param figures JSON text */
  putFigures(id: string, figures: string): Promise<void>;
  /** Ordered by host name, then address, then id. */
  list(): Promise<readonly ReportedInstance[]>;
  remove(id: string): Promise<void>;
  /** Removes instances whose last report is older. */
  removeSilent(olderThanMs: number): Promise<number>;
}

/**
 * State of a fetch that instances share: `fetching` from the code host, `uploading` to the bucket, `shared` in the bucket.
 * `private`: it will not become a shared object. `failed`: the fetch failed.
 */
export type SharedFetchState = "fetching" | "uploading" | "shared" | "private" | "failed";

/** Progress that the instance which fetches reports. */
export interface SharedFetchProgress {
  readonly state: "fetching" | "uploading";
  /** Bytes received from the code host. */
  readonly bytes: number;
  /** Undefined: unknown. */
  readonly expectedBytes: number | undefined;
}

/** A shared fetch as the other instances see it. */
export interface SharedFetchRecord {
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
  readonly state: SharedFetchState;
  readonly bytes: number;
  readonly expectedBytes: number | undefined;
  /** Milliseconds since it began. */
  readonly elapsedMs: number;
  /** Milliseconds until the record ends by itself; 0 or less: the instance that fetches has not reported in time. */
  readonly remainingMs: number;
}

/** Result of beginning a shared fetch. */
export type SharedFetchStart =
  /** The caller fetches. */
  | { readonly kind: "begun"; readonly fence: number }
  /** Another instance fetches, or has fetched. */
  | { readonly kind: "other"; readonly fetch: SharedFetchRecord };

/** Fetches from the code host that several instances wait for. At most one instance fetches for a key. */
export interface SharedFetchStore {
  /**
   * @param ttlMs the record ends by itself that long after the last report
   * @param insteadOf fencing number of a fetch that is `shared`, but whose object was not found
   */
  begin(key: string, holder: string, ttlMs: number, insteadOf?: number): Promise<SharedFetchStart>;
  /** Reports progress, and extends the record. @returns whether another instance waits; undefined: the record ended */
  progress(
    key: string,
    fence: number,
    progress: SharedFetchProgress,
    ttlMs: number,
  ): Promise<{ readonly isAwaited: boolean } | undefined>;
  /**
   * Ends the fetch. Nothing happens if the record ended already.
   *
   * @param keepMs how long others are told about the end before the next one fetches again
   */
  end(key: string, fence: number, state: "shared" | "private" | "failed", keepMs: number): Promise<void>;
  find(key: string): Promise<SharedFetchRecord | undefined>;
  /** Marks the fetch as awaited by another instance. */
  markAwaited(key: string, fence: number): Promise<void>;
  /** Deletes records that ended that long ago. */
  deleteEnded(olderThanMs: number): Promise<number>;
}

/** The current manifest of a repository, for a bucket whose conditional writes do not work. */
export interface ManifestPointer {
  /** Name of the object. */
  readonly name: string;
  readonly generation: number;
  /** Fencing number under which it was written; 0 without a lease. */
  readonly fence: number;
}

export interface ManifestPointerStore {
  /** @param key made by `repositoryKey` */
  get(key: string): Promise<ManifestPointer | undefined>;
  /**
   * Replaces the pointer if the stored generation is the expected one, and the stored fencing number is not higher.
   *
   * @param expected generation; undefined: there is no pointer yet
   */
  replace(key: string, next: ManifestPointer, expected: number | undefined): Promise<boolean>;
}
