import { within, type Clock } from "@devplat/base";
import type { IdleDetector } from "@devplat/git-mirror";
import { isStorable, repositoryId } from "../access/repository-id.ts";
import type { ByteSource, Metrics } from "../telemetry/metrics.ts";
import type { CachedRepository } from "./cached-repository.ts";
import type { QueueRules } from "./admission/admission-queue.ts";
import { ClientWait } from "./admission/client-wait.ts";
import type { ToldWaiters } from "./admission/told-waiters.ts";
import type { CoalescedFetch, FetchReader } from "./coalescing/coalesced-fetch.ts";
import { PACKFILE, canKeepAlive } from "./coalescing/keep-alive.ts";
import type { CoalescedFetches } from "./coalescing/coalesced-fetches.ts";
import { joinWhenShared, sharingKey } from "./coalescing/sharing.ts";
import type { LeadFetch } from "./coalescing/lead-fetch.ts";
import type { FetchJob, FetchPlan, PlannedFetch, WaitingJob } from "./fetch-plan.ts";
import type { StoredFills } from "./filling/stored-fills.ts";
import type { RepositoryRegistry } from "./repository-registry.ts";
import type { ResponseStore } from "./responses/response-store.ts";

export interface GitCacheParts {
  readonly repositories: RepositoryRegistry;
  readonly responses: ResponseStore;
  readonly idle: IdleDetector;
  readonly fetches: CoalescedFetches;
  readonly lead: LeadFetch;
  /** Undefined: with a bucket, an empty mirror is brought up to date from there. */
  readonly storedFills: StoredFills | undefined;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly told: ToldWaiters;
  readonly rules: () => QueueRules;
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
   * @returns `told` if the client has waited in a queue so long that it must be told
   * @throws GitError if the code host does not answer
   */
  async plan(job: FetchJob): Promise<FetchPlan> {
    const { client, fetch } = job;
    const beginning = fetch !== undefined && canKeepAlive(fetch) ? PACKFILE : undefined;
    const wait = new ClientWait({ since: this.#parts.clock.monotonic(), client, beginning });
    const { generation } = job.repository;
    const served = this.#confirmed({ ...job, wait, generation });
    const over = served.then(
      () => undefined,
      () => undefined,
    );
    const notice = await Promise.race([over, wait.told]);
    return notice === undefined ? await served : { kind: "told", notice, served };
  }

  async #confirmed(job: WaitingJob): Promise<FetchPlan> {
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

  /**
   * Joins a fetch of another request. If the client that leads it is told that it waits, so is this one.
   *
   * @returns `refused` before the client got a byte; undefined if the fetch is not shared, or the client left
   */
  async #join(
    other: CoalescedFetch,
    { gone, wait }: WaitingJob,
  ): Promise<FetchReader | "refused" | undefined> {
    const { fetches, told, rules, clock } = this.#parts;
    const joined = joinWhenShared(other, gone);
    const over = joined.then(() => undefined);
    const notice = await Promise.race([over, fetches.waitOf(other)?.told ?? over]);
    if (notice === undefined) return await joined;
    const silentMs = wait.since + rules().silentMs - clock.monotonic();
    const settled = over.then(() => true);
    if (wait.isServed || (await within(settled, Math.max(0, silentMs))) === true) return await joined;
    const end = told.begin();
    if (end === undefined) {
      void joined.then((reader) => reader?.leave());
      return "refused";
    }
    try {
      wait.tell(notice);
      return await joined;
    } finally {
      end();
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

  /** Counts the bytes of a response that did not reach its end: the client left, or stored data is damaged. */
  cutOff(source: ByteSource, bytes: number): void {
    this.#parts.metrics.bytesSent(source, bytes);
  }

  async #plan(job: WaitingJob): Promise<PlannedFetch> {
    const { responses, idle, fetches, lead, storedFills, metrics, clock, rules } = this.#parts;
    const { repository, gone, authorization } = job;
    const { id } = repository;
    idle.touch(id.key);
    const key = isStorable(id) ? job.key : undefined;
    if (key !== undefined) repository.uses.set(key, (repository.uses.get(key) ?? 0) + 1);
    // The deadline is for the whole request, not for each fetch that it waits for.
    const deadline = clock.monotonic() + rules().queueMs;
    const mayRead = key !== undefined && authorization.wantsShown;
    let insteadOf: number | undefined;
    while (!gone.aborted) {
      const { generation } = repository;
      const shared = sharingKey({ id, key, generation, identity: authorization.identity, mayRead });
      let broken = false;
      if (key !== undefined) {
        // Look for a running fetch before the await. It could end during the await, and be found neither as fetch nor as file.
        if (mayRead && fetches.find(shared) === undefined) {
          const file = await responses.open(id, key);
          if (file === "failed") broken = true;
          else if (file !== undefined) {
            const looks = clock.monotonic() >= repository.looksAgainAt;
            const used = looks ? storedFills?.behind({ ...job, generation }, key, file) : undefined;
            return { plan: { kind: "file", file: used ?? file }, confirm: true };
          }
        }
        const other = fetches.find(shared);
        if (other?.joinable === true) {
          const reader = await this.#join(other, job);
          if (reader === "refused") return { plan: { kind: "busy" }, confirm: false };
          if (reader !== undefined) {
            metrics.followed();
            return { plan: { kind: "follow", reader }, confirm: true };
          }
          const late = clock.monotonic() >= deadline;
          if (late && !job.wait.isServed && fetches.wasTurnedAway(other))
            return { plan: { kind: "busy" }, confirm: false };
          continue;
        }
      }
      const led = await lead.run({
        job: { ...job, generation },
        key,
        shared,
        broken,
        mayRead,
        insteadOf,
        deadline,
      });
      if ("plan" in led) return led;
      insteadOf = led.shared;
    }
    return { plan: { kind: "gone" }, confirm: false };
  }
}

/** Releases what a plan holds. */
export async function leave(plan: FetchPlan): Promise<void> {
  if (plan.kind === "file") await plan.file.close();
  else if (plan.kind === "follow" || plan.kind === "lead") plan.reader.leave();
}
