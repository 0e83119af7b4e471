import { TimeLimit, backoffMs, type Clock } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { ObjectStoreError } from "@devplat/object-store";
import type { RepositoryId } from "../../../access/repository-id.ts";
import { SvcError } from "../../../errors.ts";
import type { FaultLog } from "../../fault-log.ts";
import { Notifier } from "../../coalescing/notifier.ts";
import { jobName, type UploadJob, type UploadKind } from "./upload-job.ts";
import type { UploadJournal } from "./upload-journal.ts";
import { WaitingJobs, weightOf, type UploadFigures, type WaitingJob } from "./waiting-jobs.ts";

/** Waits after failures. The longest one is as long as the circuit breaker keeps requests from the store. */
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** Tries of a job that fails although the store works. */
const MAX_TRIES = 6;

/** Codes of faults of one object. All others say that the store or its settings are at fault. */
const FAULTS_OF_OBJECT: ReadonlySet<string> = new Set([
  "missing",
  "condition_failed",
  "damaged",
  "invalid_key",
]);

export interface UploadQueueParts {
  readonly journal: Pick<UploadJournal, "write" | "remove" | "read">;
  /** The epoch of a repository as far as this process knows. */
  readonly epochs: { of(id: RepositoryId): number };
  readonly faults: Pick<FaultLog, "once" | "forget">;
  readonly clock: Clock;
}

export interface UploadQueueOptions {
  /** `cache.object_queue_mb`, in bytes. */
  readonly maxBytes: number;
  /** `cache.object_upload_parallel` */
  readonly parallel: number;
  /** Called after the result of each try, for metrics. Default: nothing. */
  readonly onTried?: (kind: string, result: "success" | "error" | "dropped") => void;
}

/**
 * Uploads that wait for their turn, in memory and in a journal on disk. Requests never wait for it. Jobs run in the order in
 * which they were added, except those that somebody waits for. While the store or the database fails, no job is tried until a
 * growing time has passed.
 */
export class UploadQueue {
  readonly #parts: UploadQueueParts;
  readonly #options: UploadQueueOptions;
  readonly #kinds = new Map<string, UploadKind>();
  readonly #waiting = new WaitingJobs();
  /** Fires whenever there may be something to do, or nothing left. */
  readonly #changed = new Notifier(() => false);
  /** Writes of the journal, in their order. */
  readonly #writes = new Serializer();
  /** Failures of the store or the database since the last success. */
  #failures = 0;
  /** In `clock.monotonic()`. */
  #pausedUntil = 0;

  constructor(parts: UploadQueueParts, options: UploadQueueOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Call it before {@link run}. */
  register(name: string, kind: UploadKind): void {
    this.#kinds.set(name, kind);
  }

  /**
   * Adds a job of the repository's current epoch. If one with the same subject waits, it stays the only one; if it runs, it is
   * repeated. A full queue may drop the job. Never throws.
   */
  add(job: Omit<UploadJob, "epoch">): void {
    const known = this.#waiting.get(jobName(job));
    if (known !== undefined) {
      known.again = known.running !== undefined;
      return;
    }
    const added = { ...job, epoch: this.#parts.epochs.of(job.id) };
    if (!this.#makeRoom(added)) {
      this.#options.onTried?.(job.kind, "dropped");
      return;
    }
    this.#waiting.add(added);
    this.#changed.notify();
    this.#record(added, "write");
  }

  /** The job with this subject, if it waits, goes before all others. */
  hurry(job: Pick<UploadJob, "kind" | "id" | "subject">): void {
    this.#waiting.hurry(jobName(job));
    this.#changed.notify();
  }

  /** The job with this subject, if it waits or runs. */
  find(job: Pick<UploadJob, "kind" | "id" | "subject">): UploadJob | undefined {
    return this.#waiting.get(jobName(job))?.job;
  }

  /** Whether a job with this subject waits or runs. */
  has(job: Pick<UploadJob, "kind" | "id" | "subject">): boolean {
    return this.find(job) !== undefined;
  }

  /** Jobs of a repository that wait or run. Without one: all. */
  figures(id?: RepositoryId): UploadFigures {
    return this.#waiting.figures(id);
  }

  /** Drops the jobs of a repository that is purged, and ends the running ones. */
  drop(id: RepositoryId): void {
    for (const entry of this.#waiting.all()) {
      if (entry.job.id.key !== id.key || this.#kinds.get(entry.job.kind)?.survivesPurge === true) continue;
      entry.running?.abort(new Error("the repository was purged"));
      this.#leave(entry);
    }
  }

  /** Reads the jobs of the last run. Call it once, before {@link run}. @throws a system error */
  async restore(): Promise<void> {
    for (const job of await this.#parts.journal.read()) if (!this.has(job)) this.#waiting.add(job);
  }

  /** Runs jobs until the signal fires. Jobs that run then are ended, and repeated after the next start. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = (): void => this.#changed.notify();
    signal.addEventListener("abort", wake);
    await Promise.all(Array.from({ length: this.#options.parallel }, async () => this.#work(signal)));
    signal.removeEventListener("abort", wake);
    await this.#writes.settled();
  }

  /**
   * Waits until no job is left, the time is over, or the store fails. {@link run} must be running.
   *
   * @param ms maximum time to wait
   */
  async drain(ms: number): Promise<void> {
    using limit = new TimeLimit(this.#parts.clock, ms);
    await this.ended(undefined, limit.signal);
  }

  /**
   * Waits until no job with this subject waits or runs, the signal fires, or the store fails.
   *
   * @param job undefined: any job
   * @returns whether there is none: it was done, dropped or given up
   */
  async ended(
    job: Pick<UploadJob, "kind" | "id" | "subject"> | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock } = this.#parts;
    const isOver = (): boolean => (job === undefined ? this.figures().jobs === 0 : !this.has(job));
    const wake = (): void => this.#changed.notify();
    signal.addEventListener("abort", wake);
    while (!isOver() && !signal.aborted && this.#pausedUntil <= clock.monotonic()) await this.#changed.wait();
    signal.removeEventListener("abort", wake);
    return isOver();
  }

  /** Waits for writes of the journal. */
  async settled(): Promise<void> {
    await this.#writes.settled();
  }

  async #work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const now = this.#parts.clock.monotonic();
      const entry = now < this.#pausedUntil ? undefined : this.#waiting.next(now);
      if (entry !== undefined) await this.#try(entry, signal);
      else await this.#wait();
    }
  }

  /** Waits until a job is added, or one that had failed may be tried again. */
  async #wait(): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.monotonic();
    const first = Math.max(this.#waiting.nextAt(), this.#pausedUntil);
    if (first === Infinity) return await this.#changed.wait();
    const over = new AbortController();
    const timer = clock.sleep(Math.max(0, first - now), over.signal).catch(() => undefined);
    await Promise.race([timer, this.#changed.wait()]);
    over.abort();
  }

  async #try(entry: WaitingJob, stopping: AbortSignal): Promise<void> {
    const { job } = entry;
    const { kind: name, id } = job;
    const kind = this.#kinds.get(name);
    const isCurrent = kind?.survivesPurge === true || this.#parts.epochs.of(id) === job.epoch;
    if (kind === undefined || !isCurrent) return this.#leave(entry);
    entry.running = new AbortController();
    entry.again = false;
    const { signal } = entry.running;
    try {
      await kind.run(job, AbortSignal.any([signal, stopping]));
      this.#failures = 0;
      this.#options.onTried?.(name, "success");
      this.#parts.faults.forget({ id });
      entry.running = undefined;
      if (!signal.aborted && entry.again) this.#waiting.putLast(entry);
      else this.#leave(entry);
    } catch (error) {
      entry.running = undefined;
      if (signal.aborted || stopping.aborted) return;
      this.#options.onTried?.(name, "error");
      this.#failed(entry, error);
    }
  }

  #failed(entry: WaitingJob, error: unknown): void {
    const { clock, faults } = this.#parts;
    const now = clock.monotonic();
    faults.once({ id: entry.job.id }, error, "data cannot be uploaded to the bucket");
    this.#waiting.putLast(entry);
    if (isOfService(error)) {
      // Jobs that ran concurrently fail for the same reason.
      if (now < this.#pausedUntil) return;
      this.#pausedUntil = now + backoffMs(++this.#failures, BACKOFF);
      this.#changed.notify();
      return;
    }
    const isKept = this.#kinds.get(entry.job.kind)?.isNeverGivenUp === true || isContention(error);
    if (++entry.failures >= MAX_TRIES && !isKept) return this.#leave(entry);
    entry.notBefore = now + backoffMs(entry.failures, BACKOFF);
  }

  #leave(entry: WaitingJob): void {
    if (!this.#waiting.remove(entry)) return;
    this.#record(entry.job, "remove");
    this.#changed.notify();
  }

  /** @returns false if the job must be dropped, because the queue is full */
  #makeRoom(job: UploadJob): boolean {
    const { maxBytes } = this.#options;
    const isDroppable = (kind: string): boolean => this.#kinds.get(kind)?.isDroppable === true;
    if (isDroppable(job.kind)) return this.figures().bytes + weightOf(job) <= maxBytes;
    for (const entry of this.#waiting.all()) {
      if (this.figures().bytes + weightOf(job) <= maxBytes) break;
      if (!isDroppable(entry.job.kind) || entry.running !== undefined) continue;
      this.#options.onTried?.(entry.job.kind, "dropped");
      this.#leave(entry);
    }
    return true;
  }

  #record(job: UploadJob, change: "write" | "remove"): void {
    const { journal, faults, clock } = this.#parts;
    const write = async (): Promise<void> => {
      // A job that left before it was written, or was added again before it was removed.
      if (this.has(job) === (change === "remove")) return;
      await (change === "write" ? journal.write(job, clock.now()) : journal.remove(job));
    };
    // Without its journal the job still runs in this process.
    void this.#writes.run(write).catch((error: unknown) => {
      faults.once({ id: job.id }, error, "the list of uploads cannot be written");
    });
  }
}

/** Whether other instances changed the same record of the database. This says nothing about the job, nor about other jobs. */
function isContention(error: unknown): boolean {
  return error instanceof SvcError && error.code === "database_contention";
}

/** Whether the store or the database is at fault. Then all jobs would fail, and a job must not be given up for it. */
function isOfService(error: unknown): boolean {
  if (error instanceof SvcError) return error.code === "database_unavailable";
  return error instanceof ObjectStoreError && !FAULTS_OF_OBJECT.has(error.code);
}
