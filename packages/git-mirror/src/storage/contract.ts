import type { FileHandle } from "node:fs/promises";
import type { ObjectFormat } from "@devplat/git-protocol";
import type { IndexedPack, ObjectDatabase, Ref } from "@devplat/git-store";
import type { RepositoryId } from "./repository-id.ts";
import type { SeedKind, SeedMaking, SoundSeedFiles, StoredSeed } from "./seed.ts";

/**
 * Contract of the storage of mirrors. `suite.test-kit.ts` tests every implementation.
 *
 * The storage keeps packs and refs. A change is a transaction: another process sees all of it or nothing, also if this
 * process is killed. One process changes a repository at a time, any number read it. Packs are immutable. An open
 * repository stays readable while another process changes or removes the stored one.
 *
 * `objects` reads packs through the file system. An implementation that keeps packs elsewhere copies them to a local
 * folder first. No caller knows where that folder is.
 */
export interface MirrorStorage {
  /** Returns the storage of one repository. Does no I/O. */
  repository(id: RepositoryId): RepositoryStorage;
  /** Lists the repositories that have data, also quarantined data. */
  list(): Promise<{ owner: string; name: string }[]>;
  /**
   * Removes what killed processes left outside of repositories, and in those that have no commit. Others are cleaned when
   * they are opened. For the start of a program.
   */
  removeLeftovers(): Promise<void>;
  /** Waits for removals in the background. */
  settled(): Promise<void>;
}

/** Storage of one repository. */
export interface RepositoryStorage {
  /** Version of the stored data. It differs after each commit of any process. Undefined: nothing is stored. */
  version(): Promise<StorageVersion | undefined>;
  /**
   * Opens the repository and checks it: refs, indexes, and packs that are not known to be sound. Removes what killed
   * processes left. Data from another origin is quarantined.
   *
   * @returns undefined if nothing is stored, or only data from another origin
   * @throws GitStoreError, JobFailure if something is damaged; StorageChanged if it was replaced during the check
   */
  open(signal: AbortSignal): Promise<StoredRepository | undefined>;
  /** Creates an empty repository. */
  create(format: ObjectFormat): Promise<StoredRepository>;
  /**
   * Removes damaged packs, and sound packs that need their objects. The remaining data is complete. Waits for the change
   * of another process. Nobody in this process may have the repository open.
   *
   * @returns undefined if nothing can be kept, or no pack is damaged: then {@link quarantine} is the next step
   */
  repair(signal: AbortSignal): Promise<RepairResult | undefined>;
  /** Removes the repository, also its quarantined data. It is gone when the promise fulfils; space is freed later. */
  remove(): Promise<void>;
  /** Moves the repository out of the way, so that an administrator can examine it. Replaces earlier quarantined data. */
  quarantine(): Promise<void>;
  /**
   * Opens a pack for reading. Removing it, or the repository, does not end that. Its origin is not checked: a caller
   * compares what it reads.
   *
   * @param name `pack-<checksum>`
   * @returns undefined if it is not there
   */
  openPack(name: string): Promise<FileHandle | undefined>;
  /** Returns the seeds of this origin, newest first. */
  seeds(): Promise<readonly StoredSeed[]>;
  /**
   * Opens a file of a seed for reading. Removing the seed does not end that.
   *
   * @param name of its pack
   * @returns undefined if it is not there, or something else is in its place
   */
  openSeedFile(name: string, kind: SeedKind): Promise<FileHandle | undefined>;
  /** Reads all files of a seed in a thread, and compares them with their SHA-256. @throws JobFailure */
  checkSeed(seed: StoredSeed): Promise<SoundSeedFiles>;
  /**
   * Removes seeds. Files that are open stay readable.
   *
   * @param name of the pack of the only one to remove. Default all
   * @returns how many were removed
   */
  removeSeeds(name?: string): Promise<number>;
  /** Returns the age and the space of the seeds. Undefined: there is none of this origin. */
  seedFigures(): Promise<SeedFigures | undefined>;
  usage(): Promise<StorageUsage>;
  /** As {@link usage}, without seeds: it reads one folder. */
  packUsage(): Promise<Omit<StorageUsage, "seedBytes">>;
}

/** Seeds of a repository, for people who look at it. */
export interface SeedFigures {
  /** When the newest one was made, in milliseconds since the epoch. */
  readonly madeAt: number;
  /** Bytes that all seeds take on disk. A file that is also a pack of the repository takes none. */
  readonly bytes: number;
}

/** Space that the packs of a repository take. */
export interface StorageUsage {
  /** Bytes of packs, indexes and seeds. A seed whose pack is one of these packs takes no bytes for it. */
  readonly bytes: number;
  /** Bytes of seeds in them. */
  readonly seedBytes: number;
  /** Time of their latest change in milliseconds since the epoch; 0: there are none. */
  readonly changedAt: number;
  /** Number of packs. */
  readonly packs: number;
  /** Bytes of packs alone. */
  readonly packBytes: number;
}

/** Version of stored data. Compare members with `===`. */
export interface StorageVersion {
  /** Differs after the repository was removed and created again. */
  readonly incarnation: string;
  /** Differs after each commit. Undefined before the first one. */
  readonly commit: string | undefined;
}

/** An open repository. The caller must close it. */
export interface StoredRepository {
  readonly format: ObjectFormat;
  /** Objects as of the last `refresh()`. */
  readonly objects: ObjectDatabase;
  /** Reads the refs of the latest commit. */
  refs(): Promise<ReadonlyMap<string, Ref>>;
  /** Moves damaged index files away that `objects` or its graph reported. @returns those that were still there */
  quarantineIndexes(files: readonly string[]): Promise<string[]>;
  /** Makes an empty folder for files that are being prepared, on the file system of the packs. */
  stage(): Promise<StagingFolder>;
  /** Begins a change. Waits for the change of another process. Undoes a change that a killed process left. */
  beginChange(signal: AbortSignal): Promise<StorageChange>;
  /**
   * Merges packs, and drops objects that only expired refs reach. Serving and changes go on; only the replacement of the
   * packs is a change. Does nothing if another process repacks.
   */
  repack(options: RepackOptions): Promise<RepackResult>;
  /**
   * Makes a seed while the repository is filled and served. It is complete or not there, also after a crash. Keeps the last two.
   * Does nothing if another process makes one.
   *
   * @returns undefined if none was made
   */
  makeSeed(making: SeedMaking): Promise<StoredSeed | undefined>;
  /** Reads all packs. @returns the names of the damaged ones */
  damagedPacks(): Promise<readonly string[]>;
  close(): void;
}

/** A change of a repository. Disposing it without a commit restores the packs and refs of before. */
export interface StorageChange extends AsyncDisposable {
  /** Refs before the change. */
  readonly refs: ReadonlyMap<string, Ref>;
  /**
   * Takes in one pack, thin or not. Then `objects` has it. The caller checks its connectivity before the commit.
   *
   * @throws GitStoreError, a system error, an error of the iterable
   */
  receivePack(pack: AsyncIterable<Uint8Array>, options: ReceiveOptions): Promise<IndexedPack>;
  /**
   * Takes in packs without indexing them. Then `objects` has them. The caller has verified every byte of their files. Packs
   * that are here already are skipped. The first of the packs is the oldest. The caller checks connectivity before the commit.
   *
   * @param folder has the files. They are moved away.
   */
  adoptPacks(folder: StagingFolder, packs: readonly StagedPack[]): Promise<void>;
  /**
   * Returns the packs and refs of before the change. Their files stay readable until the result is disposed, also after the
   * packs were replaced.
   */
  snapshot(): Promise<StorageSnapshot>;
  /** Makes the change permanent. Refs of before whose names or values are gone become retained refs. */
  commit(refs: ReadonlyMap<string, Ref>, options?: CommitOptions): Promise<void>;
}

/** Kind of a file of a pack. `graph` is the commit-graph of the repository with the pack. */
export type PackFileKind = "pack" | "idx" | "rev" | "bitmap" | "graph";

/** Folder for files that are being prepared. Disposing removes it. After a crash the next start removes it. */
export interface StagingFolder extends AsyncDisposable {
  readonly path: string;
}

/** A pack whose files are complete in a staging folder, as `<name>.<kind>`. */
export interface StagedPack {
  /** `pack-<checksum>` */
  readonly name: string;
  /** `pack` and `idx` are needed. The others save time. */
  readonly kinds: readonly PackFileKind[];
}

/** A pack of a {@link StorageSnapshot}. */
export interface SnapshotPack {
  /** `pack-<checksum>` */
  readonly name: string;
  /** Paths, by kind. */
  readonly files: Readonly<Partial<Record<PackFileKind, string>>>;
}

/** Packs and refs of a repository at one time. The packs together have all objects that the refs reach. */
export interface StorageSnapshot extends AsyncDisposable {
  /** Oldest first. */
  readonly packs: readonly SnapshotPack[];
  readonly refs: ReadonlyMap<string, Ref>;
  /** Oldest first. */
  readonly retainedRefs: readonly RetainedRef[];
}

/** A former tip, or an object that was wanted by its id. */
export interface RetainedRef {
  readonly oid: string;
  /** Time when the upstream showed another id for it, or none; milliseconds since the epoch. */
  readonly since: number;
}

export interface CommitOptions {
  /** Names of packs to remove. The other packs have all objects that they and the refs refer to. Default none. */
  readonly removed?: readonly string[];
  /** More retained refs. Default none. */
  readonly retained?: readonly RetainedRef[];
}

export interface ReceiveOptions {
  readonly signal: AbortSignal;
  /** Maximum bytes that are read from the pack before they are indexed. Undefined: no limit. */
  readonly maxAheadBytes: number | undefined;
}

export interface RepackOptions {
  /** Milliseconds for which objects of dropped refs are retained. Infinity: for ever. */
  readonly pruneAfterMs: number;
  /** Minimum number of packs to merge. */
  readonly minPacks: number;
  readonly signal: AbortSignal;
}

/** Result of a repack. */
export interface RepackResult {
  /** Packs that became one. 0: nothing was merged. */
  readonly merged: number;
  /** Objects that were dropped. */
  readonly dropped: number;
  /** Name of the merged pack. Undefined: nothing was merged. */
  readonly pack: string | undefined;
  /** Names of the packs that it replaced. */
  readonly replaced: readonly string[];
}

/** Result of a repair. */
export interface RepairResult {
  /** Damaged packs. They are quarantined. */
  readonly damaged: readonly string[];
  /** Sound packs that needed objects of the damaged ones. They are removed. */
  readonly incomplete: readonly string[];
}
