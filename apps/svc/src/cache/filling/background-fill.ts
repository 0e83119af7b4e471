import type { CachedRepository } from "../cached-repository.ts";
import { packOf, requestFor } from "../coalescing/missing-object-fetch.ts";
import type { FaultLog } from "../fault-log.ts";
import { isUploadPackResult } from "../../upstream/headers.ts";
import type { FetchJob } from "../fetch-plan.ts";
import type { Mirrors } from "@devplat/git-mirror";
import type { UpstreamLimit } from "../coalescing/upstream-limit.ts";

/** Prefixes of the refs that a fill requests: branches and tags, never proposals (`refs/pull/`). */
const FILL_PREFIXES = ["HEAD", "refs/heads/", "refs/tags/"];

/** The pack of a fill is larger than `cache.fill_max_mb`. */
class TooBig extends Error {}

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
  readonly #limit: UpstreamLimit;
  readonly #faults: FaultLog;
  readonly #running = new Set<string>();
  /** Repositories that are too large, and the generation of their data. */
  readonly #tooBig = new WeakMap<CachedRepository, number>();
  readonly #ended = new AbortController();

  constructor(options: BackgroundFillOptions, mirrors: Mirrors, limit: UpstreamLimit, faults: FaultLog) {
    this.#options = options;
    this.#mirrors = mirrors;
    this.#limit = limit;
    this.#faults = faults;
  }

  /** Never rejects. */
  async fill(job: FetchJob): Promise<void> {
    const { repository } = job;
    const { generation } = repository;
    const { key } = repository.id;
    if (this.#running.has(key) || this.#tooBig.get(repository) === generation || this.#ended.signal.aborted) {
      return;
    }
    this.#running.add(key);
    let release: (() => void) | undefined;
    try {
      release = await this.#limit.acquire(key, this.#ended.signal, this.#options.waitMs, true);
      if (release !== undefined) await this.#fill(job);
    } catch (error) {
      if (error instanceof TooBig) this.#tooBig.set(repository, generation);
      if (generation === repository.generation && !this.#ended.signal.aborted) {
        this.#faults.once(repository, error, "a repository cannot be stored ahead");
      }
    } finally {
      release?.();
      this.#running.delete(key);
    }
  }

  /** Ends what runs. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
  }

  async #fill(job: FetchJob): Promise<void> {
    const { repository, format, fetch } = job;
    const mirror = this.#mirrors.of(repository.id);
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
    const open = async (): Promise<AsyncIterable<Buffer>> => {
      const response = await job.upstream.fetch(requestFor([...wants], new Map(), format), signal);
      if (!isUploadPackResult(response)) throw new Error("the code host gives no pack");
      return bounded(packOf(response), this.#options.maxBytes);
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
