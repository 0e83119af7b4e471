import type { Worker } from "node:worker_threads";
import type { IndexWorkers } from "@devplat/git-store";
import { JobFailure, type Job, type JobResults, type JobRunner } from "./job.ts";
import type { JobReply } from "./job-reply.ts";

/**
 * Runs jobs in idle threads of the indexing pool. The thread that has indexed the pack of a fill then checks it, too:
 * another thread costs 0.2 s of CPU to start, and as much again until its code is compiled. Without an idle thread the
 * job runs in a separate one, because threads of the pool may wait for the pack of a slow upstream.
 */
export class WarmJobs implements JobRunner {
  readonly #pool: IndexWorkers;
  readonly #otherwise: JobRunner;
  /** Threads with a job, and how to end it. */
  readonly #running = new Map<Worker, (error: Error) => void>();

  constructor(pool: IndexWorkers, otherwise: JobRunner) {
    this.#pool = pool;
    this.#otherwise = otherwise;
  }

  async run<Kind extends Job>(job: Kind): Promise<JobResults[Kind["kind"]]> {
    const worker = this.#pool.tryTakeIdle();
    if (worker === undefined) return await this.#otherwise.run(job);
    const { result, failure } = await this.#reply(worker, job);
    if (failure !== undefined) throw new JobFailure(failure.message, failure.code);
    return result as JobResults[Kind["kind"]];
  }

  /** Ends idle threads, which frees their memory. */
  async rest(): Promise<void> {
    await this.#pool.rest();
    await this.#otherwise.rest();
  }

  /** Ends running jobs with an error. */
  async close(): Promise<void> {
    const running = [...this.#running];
    this.#running.clear();
    for (const [, end] of running) end(new Error("the thread for jobs on packs was ended"));
    await Promise.all(running.map(([worker]) => this.#pool.discard(worker)));
  }

  async #reply(worker: Worker, job: Job): Promise<JobReply> {
    const replied = Promise.withResolvers<JobReply>();
    const { reject } = replied;
    this.#running.set(worker, reject);
    worker.on("message", replied.resolve);
    worker.on("error", reject);
    worker.on("exit", () => reject(new Error("the thread for jobs on packs ended")));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage({ id: 0, job });
    try {
      const reply = await replied.promise;
      await this.#pool.give(worker);
      return reply;
    } catch (error) {
      // After a close the thread was discarded already.
      if (this.#running.has(worker)) await this.#pool.discard(worker);
      throw error;
    } finally {
      this.#running.delete(worker);
    }
  }
}
