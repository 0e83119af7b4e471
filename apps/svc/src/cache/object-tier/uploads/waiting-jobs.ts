import type { RepositoryId } from "../../../access/repository-id.ts";
import { jobName, type UploadJob } from "./upload-job.ts";

/** Bytes that a job counts at least, so that the number of small jobs is limited too. */
const MIN_JOB_BYTES = 64 * 1024;

/** Jobs that wait or run, and their bytes. */
export interface UploadFigures {
  readonly jobs: number;
  readonly bytes: number;
}

/** A job in memory. */
export interface WaitingJob {
  readonly job: UploadJob;
  /** Failures that were not the store's. */
  failures: number;
  /** Monotonic time in milliseconds. */
  notBefore: number;
  /** Set while it runs. */
  running: AbortController | undefined;
  /** It was added again while it ran. */
  again: boolean;
}

/** Jobs that wait or run, in the order of their turns. */
export class WaitingJobs {
  readonly #jobs = new Map<string, WaitingJob>();
  /** Names of jobs that somebody waits for. */
  readonly #urgent = new Set<string>();
  #bytes = 0;

  /** @param name see jobName */
  get(name: string): WaitingJob | undefined {
    return this.#jobs.get(name);
  }

  /** Jobs in their order. The caller may remove them. */
  all(): Iterable<WaitingJob> {
    return this.#jobs.values();
  }

  add(job: UploadJob): void {
    const fresh = { failures: 0, notBefore: 0, running: undefined, again: false };
    this.#jobs.set(jobName(job), { job, ...fresh });
    this.#bytes += weightOf(job);
  }

  /** @returns false if it was removed before. Another job may have its name then. */
  remove(entry: WaitingJob): boolean {
    const name = jobName(entry.job);
    if (this.#jobs.get(name) !== entry) return false;
    this.#jobs.delete(name);
    this.#urgent.delete(name);
    this.#bytes -= weightOf(entry.job);
    return true;
  }

  /** Puts a job behind the others. */
  putLast(entry: WaitingJob): void {
    const name = jobName(entry.job);
    if (this.#jobs.get(name) !== entry) return;
    this.#jobs.delete(name);
    this.#jobs.set(name, entry);
  }

  /** The job with this name, if there is one, goes before the others. */
  hurry(name: string): void {
    if (this.#jobs.has(name)) this.#urgent.add(name);
  }

  /** The job whose turn it is. @param now monotonic time in milliseconds */
  next(now: number): WaitingJob | undefined {
    const isReady = (entry: WaitingJob | undefined): entry is WaitingJob =>
      entry !== undefined && entry.running === undefined && entry.notBefore <= now;
    for (const name of this.#urgent) {
      const entry = this.#jobs.get(name);
      if (isReady(entry)) return entry;
    }
    for (const entry of this.#jobs.values()) if (isReady(entry)) return entry;
    return undefined;
  }

  /** Monotonic time at which a job that does not run may begin; Infinity: there is none. */
  nextAt(): number {
    let first = Infinity;
    for (const { running, notBefore } of this.#jobs.values())
      if (running === undefined) first = Math.min(first, notBefore);
    return first;
  }

  figures(id?: RepositoryId): UploadFigures {
    if (id === undefined) return { jobs: this.#jobs.size, bytes: this.#bytes };
    const jobs = [...this.#jobs.values()].filter(({ job }) => job.id.key === id.key);
    return { jobs: jobs.length, bytes: jobs.reduce((sum, { job }) => sum + job.bytes, 0) };
  }
}

/** Bytes of a job for the limit of the queue. */
export function weightOf({ bytes }: UploadJob): number {
  return Math.max(bytes, MIN_JOB_BYTES);
}
