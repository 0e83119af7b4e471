import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { TimeLimit, exists, type Clock, type Logger } from "@devplat/base";
import type { MirrorSet, MirrorStorage, SeedFigures } from "@devplat/git-mirror";
import { isStorable, repositoryId, type RepositoryId } from "../access/repository-id.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { BackgroundWork } from "./background-work.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { Cleanup } from "./cleanup.ts";
import type { FaultLog } from "./fault-log.ts";
import type { BackgroundFills } from "./filling/background-fill.ts";
import {
  enabledPolicy,
  type CacheMaintenance,
  type CachePolicies,
  type CachePolicy,
  type CacheStats,
  type WarmStart,
} from "./policy.ts";
import type { ObjectTier } from "./object-tier/object-tier.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { RepositoryReset } from "./repository-reset.ts";
import type { ResponseStore } from "./responses/response-store.ts";
import type { SeedLooks } from "./seeds/seed-looks.ts";
import type { Warmer } from "./warming/warmer.ts";
import { HANDED_FOLDER } from "./responses/response-folders.ts";

/** Milliseconds between two cleanup runs (mission 000, "Limits"). */
export const CLEANUP_INTERVAL_MS = 600_000;

export interface CacheServiceParts {
  /** `cache.storage_path` */
  readonly storagePath: string;
  readonly repositories: RepositoryRegistry;
  readonly responses: ResponseStore;
  /** Undefined: no bucket is configured. */
  readonly tier: ObjectTier | undefined;
  readonly storage: Pick<MirrorStorage, "removeLeftovers" | "repository">;
  /** Whether responses are handed to the proxy in front (`server.accel`). */
  readonly handsOver: boolean;
  readonly mirrors: MirrorSet;
  readonly background: BackgroundFills;
  readonly reset: RepositoryReset;
  readonly cleanup: Cleanup;
  /** Undefined: nothing is fetched ahead. */
  readonly warmer: Warmer | undefined;
  readonly work: BackgroundWork;
  /** Aborted when the cache stops. */
  readonly stopping: AbortController;
  readonly policies: CachePolicies;
  readonly faults: FaultLog;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Work of the cache outside of git requests: start, cleanup, stop, and operations of the administration. */
export class CacheService implements Omit<CacheMaintenance, "purge" | "isPurged"> {
  readonly #parts: CacheServiceParts;
  #seedLooks: SeedLooks | undefined;

  constructor(parts: CacheServiceParts) {
    this.#parts = parts;
  }

  /**
   * Removes leftovers of crashed processes and data of repositories that are not listed, and counts the rest. Must be
   * called once, when the list is loaded and before the first request. Never rejects.
   */
  async prepare(): Promise<void> {
    const { storagePath, storage, responses, faults, logger } = this.#parts;
    try {
      await mkdir(storagePath, { recursive: true, mode: 0o700 });
      if (!this.#parts.handsOver) await removeHandedFiles(storagePath);
      await storage.removeLeftovers();
      const leftovers = await responses.removeLeftovers();
      if (leftovers > 0) logger.info({ files: leftovers }, "removed leftovers of an interrupted run");
      await this.#parts.tier?.prepare();
    } catch (error) {
      faults.once(undefined, error, "the cache folder cannot be used; requests go to the code host");
    }
    await this.cleanup();
  }

  /** Cleans up every ten minutes until the signal fires; then waits for responses that are being stored. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, mirrors, background, warmer, stopping, tier } = this.#parts;
    const uploading = tier?.run(signal);
    while (!signal.aborted) {
      await clock.sleep(CLEANUP_INTERVAL_MS, signal).catch(() => undefined);
      if (!signal.aborted) await this.cleanup();
    }
    stopping.abort(new Error("the service is stopping"));
    mirrors.stop();
    background.stop();
    warmer?.stop();
    await uploading;
    await this.settled();
    await mirrors.close();
  }

  /** Uploads what waits for it, for the last time. @param ms maximum time. Never rejects. */
  async drain(ms: number): Promise<void> {
    await this.#parts.tier?.drain(ms);
  }

  /** Waits for writes and removals that are under way. */
  async settled(): Promise<void> {
    const { work, warmer, responses, mirrors } = this.#parts;
    await work.settled();
    await warmer?.settled();
    await responses.settled();
    await mirrors.settled();
    await this.#parts.tier?.settled();
  }

  stats(owner: string, name: string): CacheStats {
    const { responses, mirrors, policies, faults } = this.#parts;
    const repository = this.#repository(owner, name);
    const { packs, bytes: packBytes } = mirrors.mirrors.figures(repository.id);
    const {
      responses: files,
      bytes,
      fileBytes,
      references,
      referredBytes,
    } = responses.figures(repository.id);
    const { hits, misses, bytesSaved, secondsSaved, lastFetchAt } = repository;
    // The last look may have been before seeds were switched off.
    const seed = enabledPolicy(policies, repository.id)?.seed === true ? repository.seed : undefined;
    const lastError = faults.lastError(repository);
    return {
      sizeBytes: fileBytes + packBytes,
      bucket: this.#parts.tier?.figures(repository.id),
      responseFiles: files,
      references,
      framedBytes: bytes - referredBytes,
      referredBytes,
      packs,
      seed,
      hits,
      misses,
      bytesSaved,
      secondsSaved,
      lastFetchAt,
      lastError,
    };
  }

  /**
   * Removes the data of this instance. Responses that began before are not stored after it.
   *
   * @param keepsTips whether the refs that the code host showed stay known. Default false.
   */
  async purge(owner: string, name: string, { keepsTips = false } = {}): Promise<void> {
    const { repositories, reset, policies, metrics } = this.#parts;
    const repository = this.#repository(owner, name);
    if (!keepsTips) repository.tips.clear();
    await reset.removeAll(repository);
    if (policies.find(owner, name) === undefined) {
      repositories.forget(repository.id);
      metrics.forgetResponseSize(owner, name);
      this.#parts.tier?.forget(owner, name);
    } else {
      metrics.responseSize(owner, name, 0);
    }
  }

  /** Waits until the bucket has followed the purge of a repository. @returns whether it has. Never rejects. */
  async isPurged(owner: string, name: string, ms: number): Promise<boolean> {
    const { tier, clock } = this.#parts;
    const { id } = this.#repository(owner, name);
    if (tier === undefined || !isStorable(id)) return true;
    using limit = new TimeLimit(clock, ms);
    return await tier.purged(id, limit.signal);
  }

  /**
   * Counts the responses of every repository, evicts those over the limits, and removes data of repositories that are
   * not listed any more. Never rejects.
   */
  async cleanup(): Promise<void> {
    const { cleanup, faults } = this.#parts;
    try {
      for (const { owner, name } of await cleanup.unlisted()) await this.purge(owner, name);
    } catch (error) {
      faults.once(undefined, error, "the cache folder cannot be read");
    }
    await cleanup.run();
    const { tier, policies } = this.#parts;
    if (tier !== undefined) for (const policy of policies.all()) await tier.enforceLimit(policy);
  }

  /** Applies new limits to a repository. Never rejects. */
  async policyChanged(policy: CachePolicy): Promise<void> {
    const { cleanup, tier } = this.#parts;
    await cleanup.enforce(policy);
    await tier?.enforceLimit(policy);
  }

  async look(only?: { readonly owner: string; readonly name: string }): Promise<void> {
    const { policies, tier } = this.#parts;
    const ids = (only === undefined ? policies.all() : [only])
      .map(({ owner, name }) => repositoryId(owner, name))
      .filter(isStorable);
    await Promise.all([tier?.look(ids), this.#measureMirrors(ids), this.#lookAtSeeds(ids)]);
  }

  /** Sizes of mirrors that were neither opened nor measured since the start. Never rejects. */
  async #measureMirrors(ids: readonly RepositoryId[]): Promise<void> {
    const { mirrors, faults } = this.#parts;
    for (const id of ids) {
      try {
        await mirrors.mirrors.measure(id);
      } catch (error) {
        faults.once({ id }, error, "the size of a repository is not known");
      }
    }
  }

  /** Never rejects. */
  async #lookAtSeeds(ids: readonly RepositoryId[]): Promise<void> {
    const { repositories, storage, faults, clock } = this.#parts;
    const { SeedLooks } = await import("./seeds/seed-looks.ts");
    this.#seedLooks ??= new SeedLooks();
    for (const id of ids) {
      const repository = repositories.of(id);
      try {
        const read = async (): Promise<SeedFigures | undefined> => storage.repository(id).seedFigures();
        await this.#seedLooks.look(repository, clock.monotonic(), read);
      } catch (error) {
        faults.once(repository, error, "the seeds of a repository cannot be looked at");
      }
    }
  }

  async warm(owner: string, name: string): Promise<WarmStart> {
    return (await this.#parts.warmer?.now(this.#repository(owner, name))) ?? "no_credential";
  }

  #repository(owner: string, name: string): CachedRepository {
    return this.#parts.repositories.of(repositoryId(owner, name));
  }
}

/** Removes what was there for a proxy in front, and makes private what it could read. @throws a system error */
async function removeHandedFiles(storagePath: string): Promise<void> {
  const folder = join(storagePath, HANDED_FOLDER);
  if (!(await exists(folder))) return;
  const { makePrivate } = await import("./responses/private-files.ts");
  await makePrivate(storagePath);
  await rm(folder, { recursive: true, force: true });
}
