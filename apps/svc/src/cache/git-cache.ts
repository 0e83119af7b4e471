import type { Clock } from "@devplat/base";
import type { IdleDetector } from "@devplat/git-mirror";
import { isStorable, repositoryId } from "../access/repository-id.ts";
import type { ByteSource, Metrics } from "../telemetry/metrics.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { CoalescedFetches } from "./coalescing/coalesced-fetches.ts";
import { joinWhenShared, sharingKey } from "./coalescing/sharing.ts";
import type { LeadFetch } from "./coalescing/lead-fetch.ts";
import type { FetchJob, FetchPlan, PlannedFetch } from "./fetch-plan.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { ResponseStore } from "./responses/response-store.ts";

export interface GitCacheParts {
  readonly repositories: RepositoryRegistry;
  readonly responses: ResponseStore;
  readonly idle: IdleDetector;
  readonly fetches: CoalescedFetches;
  readonly lead: LeadFetch;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** `cache.queue_seconds`, in milliseconds: how long a request waits for others, all in all. */
  readonly queueMs: number;
}

/**
 * Answers fetches of the listed repositories: from a stored response, a running fetch, the mirror, or the code host. The
 * authorization of each request decides which data it may get. After a failure of the cache the code host answers the
 * request, so that no clone fails.
 */
export class GitCache {
  readonly #parts: GitCacheParts;

  constructor(parts: GitCacheParts) {
    this.#parts = parts;
  }

  repository(owner: string, name: string): CachedRepository {
    return this.#parts.repositories.of(repositoryId(owner, name));
  }

  /**
   * Finds out how to answer a fetch. Renews the authorization if the first byte already comes from stored data.
   *
   * @throws GitError if the code host does not answer
   */
  async plan(job: FetchJob): Promise<FetchPlan> {
    const { plan, confirm } = await this.#plan(job);
    if (!confirm) return plan;
    try {
      const renewal = await job.authorization.renew();
      if (renewal.kind === "current") return plan;
      await leave(plan);
      return renewal;
    } catch (error) {
      await leave(plan);
      throw error;
    }
  }

  /** Counts an answered fetch. @param bytes that the client got */
  counted(repository: CachedRepository, result: "hit" | "miss", source: ByteSource, bytes: number): void {
    repository.lastFetchAt = this.#parts.clock.now();
    if (result === "miss") repository.misses++;
    else {
      repository.hits++;
      repository.bytesSaved += bytes;
    }
    this.#parts.metrics.bytesSent(source, bytes);
  }

  async #plan(job: FetchJob): Promise<PlannedFetch> {
    const { responses, idle, fetches, lead, metrics, clock, queueMs } = this.#parts;
    const { repository, gone, authorization } = job;
    const { id } = repository;
    idle.touch(id.key);
    const key = isStorable(id) ? job.key : undefined;
    if (key !== undefined) repository.uses.set(key, (repository.uses.get(key) ?? 0) + 1);
    // The deadline is for the whole request, not for each fetch that it waits for.
    const deadline = clock.monotonic() + queueMs;
    const mayRead = key !== undefined && authorization.wantsShown;
    while (!gone.aborted) {
      const { generation } = repository;
      const shared = sharingKey({ id, key, generation, identity: authorization.identity, mayRead });
      let broken = false;
      if (key !== undefined) {
        // Look for a running fetch before the await. It could end during the await, and be found neither as fetch nor as file.
        if (mayRead && fetches.find(shared) === undefined) {
          const file = await responses.open(id, key);
          if (file === "failed") broken = true;
          else if (file !== undefined) return { plan: { kind: "file", file }, confirm: true };
        }
        const other = fetches.find(shared);
        if (other?.joinable === true) {
          const reader = await joinWhenShared(other, gone);
          if (reader !== undefined) {
            metrics.followed();
            return { plan: { kind: "follow", reader }, confirm: true };
          }
          const late = clock.monotonic() >= deadline;
          if (late && fetches.wasTurnedAway(other)) return { plan: { kind: "busy" }, confirm: false };
          continue;
        }
      }
      const led = await lead.run({ job, key, shared, broken, deadline });
      // Filled: the mirror was filled while this request waited for a turn. Look again.
      if (led !== "filled") return led;
    }
    return { plan: { kind: "gone" }, confirm: false };
  }
}

async function leave(plan: FetchPlan): Promise<void> {
  if (plan.kind === "file") await plan.file.close();
  else if (plan.kind === "follow" || plan.kind === "lead") plan.reader.leave();
}
