import type { CachedRepository } from "../cached-repository.ts";
import { FetchRefused, MAX_ERROR_BYTES, packOf, requestFor } from "../coalescing/missing-object-fetch.ts";
import type { FaultLog } from "../fault-log.ts";
import { isUploadPackResult } from "../../upstream/headers.ts";
import { withBody, type UpstreamResponse } from "../../upstream/upstream.ts";
import { mayStore, requireStorable, type FillJob } from "../fetch-plan.ts";
import type { CachePolicies } from "../policy.ts";
import type { FetchForAll, FetchSharing } from "../fetch-sharing.ts";
import type { Mirrors } from "@devplat/git-mirror";
import type { AdmissionQueue } from "../admission/admission-queue.ts";
import type { Place } from "../admission/fair-queue.ts";
import { upstreamWork } from "../admission/places.ts";

/** Prefixes of the refs that a fill requests: branches and tags, never proposals (`refs/pull/`). */
const FILL_PREFIXES = ["HEAD", "refs/heads/", "refs/tags/"];

/** Milliseconds that a fill waits for one of another instance. Few requests wait for it, and it asks for much. */
export const SHARED_WAIT_MS = 10 * 60 * 1000;

/** The whole repository, as far as one fill is like another: subject of {@link FetchSharing.objects}. */
export const FILL_SUBJECT = "fill";

/** The pack of a fill is larger than `cache.fill_max_mb`. */
class TooBig extends Error {}

/**
 * Result of a fill.
 * - `busy`: no turn came in time. `too_big`: the pack is larger than `cache.fill_max_mb`.
 * - `removed`: the repository was removed, disabled or purged since the request.
 * - `refused`: the code host's response, which has no pack. It is for the caller whose credential was used.
 */
export type FillResult =
  | { readonly kind: "ended" }
  | { readonly kind: "busy" | "too_big" | "removed" }
  | { readonly kind: "refused"; readonly response: UpstreamResponse }
  | { readonly kind: "failed"; readonly error: unknown };

export interface BackgroundFillOptions {
  /** `cache.fill`: all branches and tags, or only the wants of the request. */
  readonly mode: "full" | "wants";
  /** `cache.fill_max_mb`, in bytes. */
  readonly maxBytes: number;
  /** Milliseconds to wait for a turn. */
  readonly waitMs: number;
}

/**
 * Fills empty mirrors behind requests whose responses cannot fill them: shallow and filtered fetches, check-outs by id.
 * One fill per repository at a time, with the credential of the request that caused it.
 */
export class BackgroundFills {
  readonly #options: BackgroundFillOptions;
  readonly #mirrors: Mirrors;
  readonly #queue: AdmissionQueue;
  readonly #sharing: FetchSharing | undefined;
  readonly #policies: CachePolicies;
  readonly #faults: FaultLog;
  readonly #running = new Map<string, Promise<FillResult>>();
  /** Repositories that are too large, and the generation of their data. */
  readonly #tooBig = new WeakMap<CachedRepository, number>();
  readonly #ended = new AbortController();

  constructor({
    options,
    mirrors,
    queue,
    sharing,
    policies,
    faults,
  }: {
    readonly options: BackgroundFillOptions;
    readonly mirrors: Mirrors;
    readonly queue: AdmissionQueue;
    /** Undefined: each instance fills its mirror for itself. */
    readonly sharing: FetchSharing | undefined;
    readonly policies: CachePolicies;
    readonly faults: FaultLog;
  }) {
    this.#options = options;
    this.#mirrors = mirrors;
    this.#queue = queue;
    this.#sharing = sharing;
    this.#policies = policies;
    this.#faults = faults;
  }

  /** Fills the mirror, unless a fill of it runs. Never rejects. */
  async fill(job: FillJob): Promise<void> {
    if (!this.#running.has(job.repository.id.key)) await this.filled(job);
  }

  /** As {@link fill}, and waits for the fill that runs. Never rejects. */
  async filled(job: FillJob): Promise<FillResult> {
    const { repository } = job;
    const { key } = repository.id;
    for (let running; (running = this.#running.get(key)) !== undefined;) {
      const result = await running;
      // The other request may be older than a removal of the data.
      if (result.kind !== "refused" && result.kind !== "removed") return result;
    }
    if (this.#tooBig.get(repository) === repository.generation) return { kind: "too_big" };
    if (this.#ended.signal.aborted) return { kind: "failed", error: this.#ended.signal.reason };
    const filling = this.#run(job).finally(() => this.#running.delete(key));
    this.#running.set(key, filling);
    return await filling;
  }

  async #run(job: FillJob): Promise<FillResult> {
    const { repository } = job;
    const { signal } = this.#ended;
    let place: Place | undefined;
    let forAll: FetchForAll | undefined;
    try {
      const turn = await this.#sharing?.objects(repository.id, FILL_SUBJECT, {
        signal,
        waitMs: SHARED_WAIT_MS,
      });
      if (turn?.kind === "lead") forAll = turn.fetch;
      const work = upstreamWork(repository.id.key, job.client, true);
      place = await this.#queue.take(work, signal, this.#options.waitMs);
      if (place === undefined) return { kind: "busy" };
      await this.#fill(job, place, forAll);
      forAll?.complete();
      forAll = undefined;
      return { kind: "ended" };
    } catch (error) {
      if (!mayStore(job, this.#policies)) return { kind: "removed" };
      if (error instanceof TooBig) this.#tooBig.set(repository, job.generation);
      if (!signal.aborted) this.#faults.once(repository, error, "a repository cannot be stored ahead");
      if (error instanceof TooBig) return { kind: "too_big" };
      if (error instanceof FetchRefused) return { kind: "refused", response: error.response };
      return { kind: "failed", error };
    } finally {
      forAll?.giveUp();
      place?.release();
    }
  }

  /** Ends what runs. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
  }

  async #fill(job: FillJob, place: Place, forAll: FetchForAll | undefined): Promise<void> {
    const { repository, format, fetch } = job;
    // Taken before the check: the removal of the data ends all fills of this mirror.
    const mirror = this.#mirrors.of(repository.id);
    requireStorable(job, this.#policies);
    const view = await mirror.view(format);
    view?.release();
    if (view !== undefined || fetch === undefined) return;
    const wants = new Set([...fetch.wants, ...job.wantedRefs.values()]);
    if (this.#options.mode === "full") {
      await job.upstream.showRefs(FILL_PREFIXES);
      const { refs, head } = repository.tips.recent();
      if (head !== undefined) wants.add(head);
      for (const { name, oid } of refs.values()) {
        if (FILL_PREFIXES.some((prefix) => name.startsWith(prefix))) wants.add(oid);
      }
    }
    const { signal } = this.#ended;
    let received = 0;
    requireStorable(job, this.#policies);
    const open = async (): Promise<AsyncIterable<Buffer>> => {
      requireStorable(job, this.#policies);
      const response = await job.upstream.fetch(requestFor([...wants], new Map(), format), signal);
      if (!isUploadPackResult(response)) {
        throw new FetchRefused(withBody(response, await response.read(MAX_ERROR_BYTES)));
      }
      return bounded(
        packOf(response, (bytes) => {
          place.moved(bytes);
          forAll?.received((received += bytes));
        }),
        this.#options.maxBytes,
      );
    };
    const shown = repository.tips.recent().refs.values();
    await mirror.receive({ open, format, wants: [...wants], shown, ifEmpty: true });
  }
}

async function* bounded(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > maxBytes) throw new TooBig("it is larger than cache.fill_max_mb");
    yield chunk;
  }
}
