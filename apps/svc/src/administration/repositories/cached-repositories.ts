import { randomUUIDv7 } from "node:crypto";
import type { Clock } from "@devplat/base";
import type { CachePolicies, CachePolicy } from "../../cache/policy.ts";
import { DEFAULTS } from "../../config/defaults.ts";
import { SvcError } from "../../errors.ts";
import { foldCase } from "../../repository-name.ts";
import type { CachedRepositoryRecord, CachedRepositoryStore } from "../../storage/store.ts";
import { requireVersion, versionMismatch, type ExpectedVersions } from "../record-version.ts";

/** Default time-out towards the code host, in seconds (the mission's default). */
export const DEFAULT_TIMEOUT_SECONDS = 30;
/** The mission's maximum. */
export const MAX_TIMEOUT_SECONDS = 3600;
/** A tebibyte in mebibytes: more than a disk of today, and exact as a number. */
export const MAX_CACHE_SIZE_MB = 1_048_576;
/** Whether git is offered bundles, by default: it asks for them with each clone, also with `--depth 1`. */
export const DEFAULT_BUNDLES = false;
/** Maximum tries of a change without a version while other instances change the same record. */
const MAX_CHANGE_TRIES = 5;

export interface NewCachedRepository {
  readonly owner: string;
  readonly name: string;
  readonly enabled: boolean;
  /** Undefined: the default. */
  readonly timeoutSeconds: number | undefined;
  /** Undefined: no limit. */
  readonly maxCacheSizeMb: number | undefined;
  /** Undefined: as `cache.seeds` says. */
  readonly seed: boolean | undefined;
  /** Undefined: the default, {@link DEFAULT_BUNDLES}. */
  readonly bundles: boolean | undefined;
}

/** Absent keys stay as they are; undefined resets a value to its default. */
export type CachedRepositoryChange = Partial<Omit<NewCachedRepository, "owner" | "name">>;

/**
 * The list of cached repositories: a copy of the store in memory, which the git routes read without I/O. A change is in
 * effect before its response. A change of another instance takes up to two seconds.
 */
export class CachedRepositories implements CachePolicies {
  readonly #store: CachedRepositoryStore;
  readonly #clock: Clock;
  #seeds: boolean;
  #byId = new Map<string, CachedRepositoryRecord>();
  #byKey = new Map<string, CachePolicy>();
  #changed: (policy: CachePolicy) => void = () => undefined;
  #ended: (policy: CachePolicy) => void = () => undefined;
  /** Counts the changes of the list in memory, so that a list that was read before one does not undo it. */
  #changes = 0;

  private constructor(store: CachedRepositoryStore, clock: Clock, seeds: boolean) {
    this.#store = store;
    this.#clock = clock;
    this.#seeds = seeds;
  }

  /** @param seeds `cache.seeds` */
  static async open(
    store: CachedRepositoryStore,
    clock: Clock,
    seeds: boolean = DEFAULTS.seeds,
  ): Promise<CachedRepositories> {
    const repositories = new CachedRepositories(store, clock, seeds);
    await repositories.#reload();
    return repositories;
  }

  /** Sets the observers of changed records, and of records that were disabled or removed. Other instances count too. */
  observe(changed: (policy: CachePolicy) => void, ended?: (policy: CachePolicy) => void): void {
    this.#changed = changed;
    if (ended !== undefined) this.#ended = ended;
  }

  /** Whether repositories whose records do not say so have seeds: `cache.seeds`. */
  get seeds(): boolean {
    return this.#seeds;
  }

  /** Applies to the next request. The observers are not called, because it can concern thousands of records. */
  set seeds(seeds: boolean) {
    if (seeds === this.#seeds) return;
    this.#seeds = seeds;
    this.#byKey = this.#policiesOf(this.#byId.values());
  }

  /** Whether a repository has seeds, by its record or `cache.seeds`. */
  seedOf({ seed }: Pick<CachedRepositoryRecord, "seed">): boolean {
    return seed ?? this.#seeds;
  }

  /** Reads the changes of other instances. @throws SvcError `database_unavailable` */
  async refresh(): Promise<void> {
    // Changes made here come in between rarely. Without them the list that was read is the current one.
    while (!(await this.#reload()));
  }

  find(owner: string, name: string): CachePolicy | undefined {
    return this.#byKey.get(keyOf(owner, name));
  }

  all(): readonly CachePolicy[] {
    return [...this.#byKey.values()];
  }

  /** Ordered by owner and name, without regard to case. */
  list(): readonly CachedRepositoryRecord[] {
    const key = (record: CachedRepositoryRecord): string => keyOf(record.owner, record.name);
    return [...this.#byId.values()].toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
  }

  /** @throws SvcError `not_found` */
  get(id: string): CachedRepositoryRecord {
    const record = this.#byId.get(id);
    if (record === undefined) throw new SvcError("not_found", "No cached repository has this id");
    return record;
  }

  /** @throws SvcError `already_exists` */
  async add(fields: NewCachedRepository): Promise<CachedRepositoryRecord> {
    const now = this.#clock.now();
    const record = { ...fields, id: randomUUIDv7(), createdAt: now, updatedAt: now, version: 1 };
    await this.#store.insert(record);
    this.#remember(record);
    return record;
  }

  /** @throws SvcError `not_found`, `version_mismatch` */
  async change(
    id: string,
    change: CachedRepositoryChange,
    expected?: ExpectedVersions,
  ): Promise<CachedRepositoryRecord> {
    for (let attempt = 1; attempt <= MAX_CHANGE_TRIES; attempt++) {
      const before = this.get(id);
      requireVersion(before, expected);
      const changed = { ...before, ...change };
      if (
        changed.enabled === before.enabled &&
        changed.timeoutSeconds === before.timeoutSeconds &&
        changed.maxCacheSizeMb === before.maxCacheSizeMb &&
        changed.seed === before.seed &&
        changed.bundles === before.bundles
      ) {
        return before;
      }
      const after = { ...changed, updatedAt: this.#clock.now(), version: before.version + 1 };
      if (await this.#store.update(after)) {
        this.#remember(after);
        this.#changed(this.#policyOf(after));
        if (before.enabled && !after.enabled) this.#ended(this.#policyOf(after));
        return after;
      }
      // Another instance changed the record first. Read again, and once more if this instance changed one in between.
      if (!(await this.#reload())) await this.#reload();
    }
    throw versionMismatch();
  }

  /** @throws SvcError `not_found`, `version_mismatch` */
  async remove(id: string, expected?: ExpectedVersions): Promise<CachedRepositoryRecord> {
    const record = this.get(id);
    requireVersion(record, expected);
    await this.#store.delete(id);
    this.#changes++;
    this.#byId.delete(id);
    this.#byKey.delete(keyOf(record.owner, record.name));
    this.#ended(this.#policyOf(record));
    return record;
  }

  #remember(record: CachedRepositoryRecord): void {
    this.#changes++;
    this.#byId.set(record.id, record);
    this.#byKey.set(keyOf(record.owner, record.name), this.#policyOf(record));
  }

  /**
   * Reads the list, and calls the observers for the changes of other instances. False: a change of this instance came during
   * the read, so the list that was read is older.
   */
  async #reload(): Promise<boolean> {
    const changes = this.#changes;
    const records = await this.#store.list();
    if (changes !== this.#changes) return false;
    // A list that is being read at the same time may be older.
    this.#changes++;
    const before = this.#byId;
    this.#byId = new Map(records.map((record) => [record.id, record]));
    this.#byKey = this.#policiesOf(records);
    for (const record of records) {
      const former = before.get(record.id);
      if (former === undefined || former.version === record.version) continue;
      this.#changed(this.#policyOf(record));
      if (former.enabled && !record.enabled) this.#ended(this.#policyOf(record));
    }
    for (const [id, record] of before) {
      if (!this.#byId.has(id)) this.#ended(this.#policyOf(record));
    }
    return true;
  }

  #policiesOf(records: Iterable<CachedRepositoryRecord>): Map<string, CachePolicy> {
    return new Map([...records].map((record) => [keyOf(record.owner, record.name), this.#policyOf(record)]));
  }

  #policyOf(record: CachedRepositoryRecord): CachePolicy {
    return {
      id: record.id,
      owner: record.owner,
      name: record.name,
      enabled: record.enabled,
      timeoutSeconds: record.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS,
      maxCacheSizeMb: record.maxCacheSizeMb,
      seed: this.seedOf(record),
      bundles: record.bundles ?? DEFAULT_BUNDLES,
    };
  }
}

function keyOf(owner: string, name: string): string {
  return foldCase(`${owner}/${name}`);
}
