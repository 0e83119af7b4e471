import type { Clock, Logger } from "@devplat/base";
import type { MirrorStorage, RepositoryId, RepositoryStorage, StorageUsage } from "@devplat/git-mirror";
import type { Metrics } from "../telemetry/metrics.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { FaultLog } from "./fault-log.ts";
import { responseLimit, type CachePolicies, type CachePolicy } from "./policy.ts";
import { isStorable, repositoryId } from "../access/repository-id.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { SeedRemovalReason } from "./seeds/remove-seeds.ts";
import type { ResponseFacts, ResponseStore } from "./responses/response-store.ts";
import type { RepositoryReset } from "./repository-reset.ts";

/** Milliseconds without a fetch after which a repository's packs may be evicted. A busy fleet fetches within an hour. */
const IDLE_MIRROR_MS = 3_600_000;

export interface CleanupParts {
  readonly repositories: Pick<RepositoryRegistry, "of">;
  readonly responses: Pick<ResponseStore, "repositories" | "list" | "remove" | "figures">;
  readonly storage: Pick<MirrorStorage, "list"> & {
    repository(id: RepositoryId): Pick<RepositoryStorage, "removeSeeds"> & {
      usage(): Promise<Pick<StorageUsage, "bytes" | "seedBytes" | "changedAt">>;
    };
  };
  readonly reset: Pick<RepositoryReset, "removeMirror">;
  readonly policies: CachePolicies;
  readonly metrics: Pick<Metrics, "evicted" | "responseSize">;
  readonly faults: Pick<FaultLog, "once">;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Whether a response waits for its upload to the bucket. It is evicted last. */
  readonly isWaiting: (id: RepositoryId, name: string) => boolean;
  /** Whether no repository has seeds (`cache.strict_lsrefs`). */
  readonly seedsAreOff: boolean;
  /** `cache.max_total_size_mb`, in bytes; Infinity: none. */
  readonly maxTotalBytes: number;
  /** `cache.drop_unused_after`, in milliseconds; Infinity: never. */
  readonly dropUnusedAfterMs: number;
}

interface Shelved extends ResponseFacts {
  readonly repository: CachedRepository;
  readonly policy: CachePolicy;
  readonly isWaiting: boolean;
}

/**
 * Keeps the cache folder within its limits (spec/svc.md section 2.4). A repository's own limit applies to its response
 * files, the total limit to all response files and packs. The longest unused are evicted first. A file that is being
 * served can still be read by the requests that opened it.
 */
export class Cleanup {
  readonly #parts: CleanupParts;

  constructor(parts: CleanupParts) {
    this.#parts = parts;
  }

  /** All repositories. Never rejects. */
  async run(): Promise<void> {
    const { policies, faults } = this.#parts;
    for (const policy of policies.all()) await this.enforce(policy);
    try {
      await this.#enforceTotal();
    } catch (error) {
      faults.once(undefined, error, "the total size of the cache cannot be kept");
    }
  }

  /** Counts the responses of one repository, and evicts those over its limit. Never rejects. */
  async enforce(policy: CachePolicy): Promise<void> {
    const { owner, name } = policy;
    const repository = this.#repository(policy);
    if (!isStorable(repository.id)) return;
    try {
      if (this.#parts.seedsAreOff || !policy.enabled || !policy.seed) {
        await this.#removeSeeds(repository, "they are switched off");
      }
      const files = await this.#shelf(repository, policy);
      const oldest = this.#parts.clock.now() - this.#parts.dropUnusedAfterMs;
      for (const file of files) if (file.mtimeMs < oldest) await this.#remove(file);
      const limit = responseLimit(policy);
      let total = this.#bytesOf(repository);
      for (const file of files.filter(({ mtimeMs }) => mtimeMs >= oldest)) {
        if (total <= limit) break;
        await this.#evict(file);
        total -= file.size;
      }
      this.#parts.metrics.responseSize(owner, name, this.#bytesOf(repository));
    } catch (error) {
      this.#parts.faults.once(repository, error, "the cleanup of a repository failed");
    }
  }

  /**
   * Repositories that have data and are not listed any more: their removal was interrupted, or happened elsewhere.
   *
   * @throws a system error
   */
  async unlisted(): Promise<readonly { readonly owner: string; readonly name: string }[]> {
    const { responses, storage, policies } = this.#parts;
    const kept = [...(await responses.repositories()), ...(await storage.list())];
    return kept.filter(({ owner, name }) => policies.find(owner, name) === undefined);
  }

  async #enforceTotal(): Promise<void> {
    const { maxTotalBytes, metrics, reset } = this.#parts;
    if (maxTotalBytes === Infinity) return;
    const files: Shelved[] = [];
    const mirrors: { repository: CachedRepository; bytes: number; seedBytes: number; usedAt: number }[] = [];
    for (const policy of this.#parts.policies.all()) {
      const repository = this.#repository(policy);
      if (!isStorable(repository.id)) continue;
      files.push(...(await this.#shelf(repository, policy)));
      const { bytes, seedBytes, changedAt } = await this.#parts.storage.repository(repository.id).usage();
      const usedAt = repository.lastFetchAt ?? changedAt;
      if (bytes > 0) mirrors.push({ repository, bytes, seedBytes, usedAt });
    }
    let total = [...files.map(({ fileBytes }) => fileBytes), ...mirrors.map(({ bytes }) => bytes)].reduce(
      (sum, bytes) => sum + bytes,
      0,
    );
    for (const file of files.toSorted(byEviction)) {
      if (total <= maxTotalBytes) break;
      // A reference takes next to no space.
      if (file.fileBytes < file.size) continue;
      await this.#evict(file);
      total -= file.fileBytes;
      metrics.responseSize(file.policy.owner, file.policy.name, this.#bytesOf(file.repository));
    }
    const idleSince = this.#parts.clock.now() - IDLE_MIRROR_MS;
    const idle = mirrors.filter(({ usedAt }) => usedAt <= idleSince).toSorted((a, b) => a.usedAt - b.usedAt);
    // A seed can be made again without the code host.
    for (const mirror of idle) {
      if (total <= maxTotalBytes) break;
      if (mirror.seedBytes === 0) continue;
      await this.#removeSeeds(mirror.repository, "cache.max_total_size_mb is reached");
      total -= mirror.seedBytes;
      mirror.bytes -= mirror.seedBytes;
    }
    for (const { repository, bytes } of idle) {
      if (total <= maxTotalBytes) break;
      repository.generation++;
      await reset.removeMirror(repository);
      total -= bytes;
      this.#parts.logger.info(
        { repo: repository.id.key, bytes },
        "removed an unused mirror: cache.max_total_size_mb is reached",
      );
    }
  }

  async #removeSeeds(repository: CachedRepository, reason: SeedRemovalReason): Promise<void> {
    const { removeSeeds } = await import("./seeds/remove-seeds.ts");
    await removeSeeds(this.#parts, repository, reason);
  }

  /** A repository's responses in the order of their eviction. */
  async #shelf(repository: CachedRepository, policy: CachePolicy): Promise<Shelved[]> {
    const files = await this.#parts.responses.list(repository.id);
    const { isWaiting } = this.#parts;
    return files
      .map((file) => ({ ...file, repository, policy, isWaiting: isWaiting(repository.id, file.name) }))
      .toSorted(byEviction);
  }

  async #evict(file: Shelved): Promise<void> {
    if (await this.#remove(file)) this.#parts.metrics.evicted(file.policy.owner, file.policy.name, 1);
  }

  /** @returns false if another process removed it first */
  async #remove({ repository, name }: Shelved): Promise<boolean> {
    return await this.#parts.responses.remove(repository.id, name);
  }

  #repository({ owner, name }: CachePolicy): CachedRepository {
    return this.#parts.repositories.of(repositoryId(owner, name));
  }

  #bytesOf({ id }: CachedRepository): number {
    return this.#parts.responses.figures(id).bytes;
  }
}

/** The longest unused first, and those that wait for their upload last. */
function byEviction(a: Shelved, b: Shelved): number {
  return Number(a.isWaiting) - Number(b.isWaiting) || a.mtimeMs - b.mtimeMs;
}
