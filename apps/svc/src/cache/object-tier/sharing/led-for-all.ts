import { TimeLimit, type Clock } from "@devplat/base";
import type { LedFetch } from "../../../coordination/led-fetch.ts";
import type { BackgroundWork } from "../../background-work.ts";
import type { FetchForAll } from "../../fetch-sharing.ts";
import type { UploadJob } from "../uploads/upload-job.ts";
import type { UploadQueue } from "../uploads/upload-queue.ts";
import type { LedFetchReport } from "./shared-fetch-reports.ts";

/**
 * Milliseconds after a transfer in which another instance can still ask for its response. Later its mirror is in the bucket
 * as a rule.
 */
const LINGER_MS = 30_000;
/** Maximum number of complete fetches that wait for others. Each of them reports to the database twice a second. */
const MAX_LINGERING = 32;
/** Milliseconds for an upload that others wait for. They give up earlier. */
const UPLOAD_MS = 60_000;

export interface LedForAllParts {
  readonly fetch: Pick<LedFetch, "fence" | "received" | "onAwaited" | "uploading" | "end">;
  /** The upload of the data. */
  readonly job: Omit<UploadJob, "epoch">;
  /** Whether it is uploaded only for an instance that waits. Otherwise it is uploaded in any case. */
  readonly onlyIfAwaited: boolean;
  /** Whether the manifest names the data, as far as this process knows. */
  readonly isThere: () => boolean;
  readonly queue: Pick<UploadQueue, "add" | "hurry" | "ended">;
  readonly work: Pick<BackgroundWork, "start">;
  readonly clock: Clock;
  /** Called at the end if another instance waited. */
  readonly onEnd: (end: LedFetchReport) => void;
  /** Fires when the service stops. */
  readonly stopping: AbortSignal;
}

/** A fetch of this instance for all. When it is complete, its data is uploaded before other things, if others wait. */
export class LedForAll implements FetchForAll {
  static #lingering = 0;
  readonly #parts: LedForAllParts;
  readonly #startedAt: number;
  #bytes = 0;
  readonly #awaited = Promise.withResolvers<void>();
  #isAwaited = false;
  #onAwaited: (() => void) | undefined;

  constructor(parts: LedForAllParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
    parts.fetch.onAwaited(() => {
      this.#isAwaited = true;
      this.#awaited.resolve();
      this.#onAwaited?.();
    });
  }

  received(bytes: number, expectedBytes?: number): void {
    this.#bytes = bytes;
    this.#parts.fetch.received(bytes, expectedBytes);
  }

  onAwaited(callback: () => void): void {
    if (this.#isAwaited) callback();
    else this.#onAwaited = callback;
  }

  complete(): void {
    this.#parts.work.start(this.#finish());
  }

  giveUp(): void {
    this.#parts.work.start(this.#end("failed"));
  }

  async #finish(): Promise<void> {
    const { fetch, job, onlyIfAwaited, isThere, queue, clock, stopping } = this.#parts;
    fetch.uploading();
    if (onlyIfAwaited && !(await this.#hasWaiting())) return await this.#end("private");
    // Also a job that runs already is repeated: it may have begun before the data was complete.
    queue.add(job);
    if (onlyIfAwaited) queue.hurry(job);
    else void this.#awaited.promise.then(() => queue.hurry(job));
    using limit = new TimeLimit(clock, UPLOAD_MS, stopping);
    const isDone = await queue.ended(job, limit.signal);
    await this.#end(isDone && isThere() ? "shared" : "private");
  }

  async #end(state: LedFetchReport["state"]): Promise<void> {
    const { fetch, clock, onEnd } = this.#parts;
    await fetch.end(state);
    if (!this.#isAwaited) return;
    onEnd({ fence: fetch.fence, state, bytes: this.#bytes, ms: clock.monotonic() - this.#startedAt });
  }

  /** Whether another instance waits, or comes soon. */
  async #hasWaiting(): Promise<boolean> {
    const { clock, stopping } = this.#parts;
    if (this.#isAwaited) return true;
    if (LedForAll.#lingering >= MAX_LINGERING) return false;
    LedForAll.#lingering++;
    try {
      using limit = new TimeLimit(clock, LINGER_MS, stopping);
      const over = Promise.withResolvers<void>();
      limit.signal.addEventListener("abort", () => over.resolve(), { once: true });
      if (limit.signal.aborted) over.resolve();
      await Promise.race([this.#awaited.promise, over.promise]);
      return this.#isAwaited;
    } finally {
      LedForAll.#lingering--;
    }
  }
}
