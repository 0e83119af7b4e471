import { systemCode, type Clock, type Logger } from "@devplat/base";
import type { Metrics } from "../telemetry/metrics.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import type { CachePolicies, CachePolicy } from "./policy.ts";
import { isStorable } from "../access/repository-id.ts";
import type { ResponseFiles, StoredFile } from "./responses/response-files.ts";
import type { StoredObjects } from "./stored-objects.ts";

const MEGABYTE = 1024 * 1024;
/** Milliseconds without a fetch after which a repository's packs may go for others: an hour is no fleet at work. */
const IDLE_STORE_MS = 3_600_000;

export interface CleanupParts {
  readonly files: Pick<ResponseFiles, "repositories" | "list" | "remove">;
  readonly objects: Pick<StoredObjects, "repositories" | "diskUse" | "remove">;
  readonly policies: CachePolicies;
  readonly metrics: Pick<Metrics, "evicted" | "responseSize">;
  readonly faults: Pick<FaultLog, "once">;
  readonly logger: Logger;
  readonly clock: Clock;
  /** `cache.max_total_size_mb`, in bytes; Infinity: none. */
  readonly maxTotalBytes: number;
  /** `cache.drop_unused_after`, in milliseconds; Infinity: never. */
  readonly dropUnusedAfterMs: number;
  readonly repository: (owner: string, name: string) => CachedRepository;
  readonly purge: (owner: string, name: string) => Promise<void>;
}

interface Shelved extends StoredFile {
  readonly repository: CachedRepository;
  readonly policy: CachePolicy;
}

/**
 * Keeps the cache folder in its limits (spec/svc.md section 2.4): a repository's response files under its own limit, all
 * of them and the packs under the total one, each by last use, oldest first. A file that is being served stays readable
 * to whoever has it open.
 */
export class Cleanup {
  readonly #parts: CleanupParts;

  constructor(parts: CleanupParts) {
    this.#parts = parts;
  }

  /** All repositories. Never rejects. */
  async run(): Promise<void> {
    const { policies, faults } = this.#parts;
    await this.#removeUnlisted();
    for (const policy of policies.all()) await this.enforce(policy);
    try {
      await this.#enforceTotal();
    } catch (error) {
      faults.once(undefined, error, "the total size of the cache cannot be kept");
    }
  }

  /** Counts one repository's response files, and evicts what is over its limit. Never rejects. */
  async enforce(policy: CachePolicy): Promise<void> {
    const { owner, name, maxCacheSizeMb } = policy;
    const repository = this.#parts.repository(owner, name);
    if (!isStorable(repository.id)) return;
    try {
      const files = await this.#shelf(repository, policy);
      const oldest = this.#parts.clock.now() - this.#parts.dropUnusedAfterMs;
      const dead = files.filter(({ mtimeMs }) => mtimeMs < oldest);
      for (const file of dead) await this.#remove(file);
      const limit = maxCacheSizeMb === undefined ? Infinity : maxCacheSizeMb * MEGABYTE;
      let total = repository.sizeBytes;
      for (const file of files.slice(dead.length)) {
        if (total <= limit) break;
        await this.#evict(file);
        total -= file.size;
      }
      this.#parts.metrics.responseSize(owner, name, repository.sizeBytes);
    } catch (error) {
      this.#parts.faults.once(repository, error, "the cleanup of a repository failed");
    }
  }

  /** Data of repositories that are not listed any more: their removal was interrupted, or happened elsewhere. */
  async #removeUnlisted(): Promise<void> {
    const { files, objects, policies, faults, purge } = this.#parts;
    try {
      const kept = [...(await files.repositories()), ...(await objects.repositories())];
      for (const { owner, name } of kept) {
        if (policies.find(owner, name) === undefined) await purge(owner, name);
      }
    } catch (error) {
      faults.once(undefined, error, "the cache folder cannot be read");
    }
  }

  async #enforceTotal(): Promise<void> {
    const { objects, maxTotalBytes, metrics } = this.#parts;
    if (maxTotalBytes === Infinity) return;
    const files: Shelved[] = [];
    const stores: { repository: CachedRepository; bytes: number; usedAt: number }[] = [];
    for (const policy of this.#parts.policies.all()) {
      const repository = this.#parts.repository(policy.owner, policy.name);
      if (!isStorable(repository.id)) continue;
      files.push(...(await this.#shelf(repository, policy)));
      const { bytes, changedAt } = await objects.diskUse(repository);
      if (bytes > 0) stores.push({ repository, bytes, usedAt: repository.lastFetchAt ?? changedAt });
    }
    let total = [...files.map(({ size }) => size), ...stores.map(({ bytes }) => bytes)].reduce(
      (sum, bytes) => sum + bytes,
      0,
    );
    for (const file of files.toSorted((a, b) => a.mtimeMs - b.mtimeMs)) {
      if (total <= maxTotalBytes) break;
      await this.#evict(file);
      total -= file.size;
      metrics.responseSize(file.policy.owner, file.policy.name, file.repository.sizeBytes);
    }
    const idleSince = this.#parts.clock.now() - IDLE_STORE_MS;
    for (const { repository, bytes, usedAt } of stores.toSorted((a, b) => a.usedAt - b.usedAt)) {
      if (total <= maxTotalBytes || usedAt > idleSince) break;
      repository.generation++;
      await objects.remove(repository);
      total -= bytes;
      this.#parts.logger.info(
        { repo: repository.id.key, bytes },
        "packs that nobody used went for cache.max_total_size_mb",
      );
    }
  }

  /** A repository's files, the longest unused first; what the repository knows of them is made true. */
  async #shelf(repository: CachedRepository, policy: CachePolicy): Promise<Shelved[]> {
    const files = (await this.#parts.files.list(repository.id)).toSorted((a, b) => a.mtimeMs - b.mtimeMs);
    repository.files.clear();
    for (const file of files) repository.files.set(file.name, file.size);
    return files.map((file) => ({ ...file, repository, policy }));
  }

  async #evict(file: Shelved): Promise<void> {
    if (await this.#remove(file)) this.#parts.metrics.evicted(file.policy.owner, file.policy.name, 1);
  }

  /** @returns whether it was still there */
  async #remove({ repository, name }: Shelved): Promise<boolean> {
    repository.files.delete(name);
    repository.checked.forget(name);
    try {
      await this.#parts.files.remove(repository.id, name);
      return true;
    } catch (error) {
      // Another process was first.
      if (systemCode(error) === "ENOENT") return false;
      throw error;
    }
  }
}
