import { within, type Clock } from "@devplat/base";
import type { Mirrors, MirrorResponder, MirrorThreads, MissingWants } from "@devplat/git-mirror";
import { isStorable } from "../../access/repository-id.ts";
import { GitError } from "../../upstream/errors.ts";
import type { UpstreamResponse } from "../../upstream/upstream.ts";
import type { BackgroundWork } from "../background-work.ts";
import {
  RequestFailed,
  ResponseBroken,
  type MissingObjectFetches,
} from "../coalescing/missing-object-fetch.ts";
import { mayStore, type FetchJob, type FillJob } from "../fetch-plan.ts";
import { enabledPolicy, type CachePolicies } from "../policy.ts";
import type { BackgroundFills } from "../filling/background-fill.ts";
import type { MirrorFiller } from "../filling/mirror-filler.ts";
import type { MirrorFaults } from "../mirror-faults.ts";
import type { MirrorSource } from "../mirror-source.ts";
import type { RepositoryReset } from "../repository-reset.ts";

/** Maximum fetches of one attempt: a fill behind another request may bring other objects than those that are wanted. */
const MAX_FETCHES = 3;
/** Minimum milliseconds to wait: enough to look up objects in a mirror that is open. */
const LOOK_MS = 500;

/** A fetch without haves whose objects the mirror must be able to send. */
export type EnsureJob = Omit<FillJob, "generation"> &
  Pick<FetchJob, "gone"> & { readonly fetch: NonNullable<FetchJob["fetch"]> };

/**
 * Result of ensuring objects.
 * - `ready`: the mirror can send them. `fetched`: they were fetched from the code host for this.
 * - `pending`: the time is over, and the fetch goes on. `gone`: the client left, and the fetch goes on.
 * - `refused`: the code host's response to a fetch with the caller's credential.
 * - `busy`: the limit of fetches gave no turn in time.
 * - `removed`: the repository was removed from the list, or disabled.
 * - `too_big`: the repository is larger than `cache.fill_max_mb`. `failed`: the objects cannot be stored.
 */
export type EnsureResult =
  | { readonly kind: "ready"; readonly fetched: boolean }
  | { readonly kind: "pending" | "gone" | "busy" | "removed" | "too_big" | "failed" }
  | { readonly kind: "refused"; readonly response: UpstreamResponse };

type BoundJob = EnsureJob & FillJob;

type Attempt = Exclude<EnsureResult, { kind: "pending" | "gone" }>;

export interface ObjectEnsurerParts {
  readonly mirrors: Mirrors;
  readonly responder: Pick<MirrorResponder, "check">;
  readonly threads: Pick<MirrorThreads, "urgency">;
  readonly missingObjects: MissingObjectFetches;
  /** Undefined: no other instance shares packs. */
  readonly source: MirrorSource | undefined;
  readonly filler: Pick<MirrorFiller, "behindTransfer">;
  readonly background: BackgroundFills;
  readonly policies: Pick<CachePolicies, "find">;
  readonly reset: Pick<RepositoryReset, "startAnew">;
  readonly faults: MirrorFaults;
  readonly work: BackgroundWork;
  readonly clock: Clock;
  /** `cache.queue_seconds`, in milliseconds. */
  readonly queueMs: number;
}

/**
 * Brings objects into the mirror before they are fetched (`svc/ensure`). Concurrent callers share one attempt. It goes on
 * when they leave, because the mirror needs the objects too.
 */
export class ObjectEnsurer {
  readonly #parts: ObjectEnsurerParts;
  readonly #running = new Map<string, Promise<Attempt>>();

  constructor(parts: ObjectEnsurerParts) {
    this.#parts = parts;
  }

  /**
   * @param waitMs maximum milliseconds to wait
   * @throws GitError if the code host does not answer
   */
  async ensure(job: EnsureJob, waitMs: number): Promise<EnsureResult> {
    const { repository, gone } = job;
    const { threads, policies, clock } = this.#parts;
    if (!isStorable(repository.id)) return { kind: "failed" };
    const deadline = clock.monotonic() + waitMs;
    const left = Promise.withResolvers<EnsureResult>();
    const leave = (): void => left.resolve({ kind: "gone" });
    gone.addEventListener("abort", leave, { once: true });
    try {
      for (;;) {
        if (gone.aborted) return { kind: "gone" };
        const key = keyOf(job);
        const running = this.#running.get(key);
        const attempt = running ?? this.#start(key, job);
        const restMs = Math.max(LOOK_MS, deadline - clock.monotonic());
        // The threads of a fill do not give way to other programs while a caller waits for it.
        const waited = within(Promise.race([attempt, left.promise]), restMs);
        const result = await threads.urgency.during(waited);
        if (enabledPolicy(policies, repository.id) === undefined) return { kind: "removed" };
        if (result === undefined) return { kind: "pending" };
        // The data was purged during the attempt, and the repository is still or again in the list.
        if (result.kind === "removed") continue;
        // A refusal is for the caller whose credential was used.
        if (result.kind !== "refused" || running === undefined) return result;
      }
    } finally {
      gone.removeEventListener("abort", leave);
    }
  }

  #start(key: string, job: EnsureJob): Promise<Attempt> {
    const attempt = this.#attempt(job).finally(() => this.#running.delete(key));
    this.#running.set(key, attempt);
    // Its callers get the error. Nobody may be left to get it.
    this.#parts.work.start(
      attempt.then(
        () => undefined,
        () => undefined,
      ),
    );
    return attempt;
  }

  async #attempt(unbound: EnsureJob): Promise<Attempt> {
    const { repository } = unbound;
    let job = { ...unbound, generation: repository.generation };
    let { source } = this.#parts;
    try {
      for (let fetches = 0; fetches <= MAX_FETCHES; fetches++) {
        let found = await this.#look(job);
        if (found !== "here" && source !== undefined) {
          if (found !== "empty") found.view.release();
          await source.refresh(repository.id, Infinity);
          source = undefined;
          // The bucket may have shown a higher epoch.
          job = { ...job, generation: repository.generation };
          found = await this.#look(job);
        }
        if (found === "here") return { kind: "ready", fetched: fetches > 0 };
        const result = found === "empty" ? await this.#fill(job) : await this.#fetch(job, found);
        if (result !== undefined) return result;
      }
      return mayStore(job, this.#parts.policies) ? { kind: "failed" } : { kind: "removed" };
    } catch (error) {
      if (!mayStore(job, this.#parts.policies)) return { kind: "removed" };
      if (error instanceof RequestFailed && error.cause instanceof GitError) throw error.cause;
      if (error instanceof GitError) throw error;
      if (error instanceof ResponseBroken) {
        const message = "the code host's response broke off; try again";
        throw new GitError("upstream_unreachable", 502, message, { cause: error });
      }
      await this.#parts.faults.failed(repository, error);
      return { kind: "failed" };
    }
  }

  /** `here`: the mirror can send the objects. `empty`: it has nothing to build on. */
  async #look(job: EnsureJob): Promise<"here" | "empty" | MissingWants> {
    const { repository, fetch, format } = job;
    const { id, tips } = repository;
    const { mirrors, responder, faults } = this.#parts;
    // Opening a large mirror takes longer than the check below waits.
    const view = await mirrors.of(id).view(format);
    view?.release();
    const onLateFailure = (error: unknown): void => void faults.failed(repository, error);
    const found = await responder.check({ id, fetch, format, tips, onLateFailure });
    if (found.kind === "unservable") return "empty";
    if (found.kind === "missing") return found;
    found.view.release();
    return "here";
  }

  /** @returns undefined: the mirror must be checked again */
  async #fill(job: BoundJob): Promise<Attempt | undefined> {
    const { filler, background } = this.#parts;
    if (await filler.behindTransfer(job.repository)) return undefined;
    const result = await background.filled(job);
    switch (result.kind) {
      case "ended":
        return undefined;
      case "failed":
        if (result.error instanceof GitError || result.error instanceof ResponseBroken) throw result.error;
        // A fault of this service is logged by the fill.
        return { kind: "failed" };
      case "refused":
        return result;
      default:
        return { kind: result.kind };
    }
  }

  /** @returns undefined: the mirror must be checked again */
  async #fetch(job: BoundJob, missing: MissingWants): Promise<Attempt | undefined> {
    const { missingObjects, mirrors, reset, queueMs } = this.#parts;
    const { repository, generation } = job;
    try {
      const running = missingObjects.running(job, missing);
      const fetching = running ?? missingObjects.fetch(job, missing, mirrors.of(repository.id), queueMs);
      const outcome = await fetching.outcome;
      if (outcome.kind === "busy" || outcome.kind === "removed") return { kind: outcome.kind };
      if (outcome.kind === "refused") return running === undefined ? outcome : undefined;
      if (outcome.kind === "unrelated" && generation === repository.generation) {
        await reset.startAnew(repository);
      }
      return undefined;
    } finally {
      missing.view.release();
    }
  }
}

function keyOf({ repository, fetch, format }: EnsureJob): string {
  const { id, generation, tips } = repository;
  return `${id.key}#${generation}.${tips.identity} ${format} ${fetch.wants.toSorted().join(" ")}`;
}
