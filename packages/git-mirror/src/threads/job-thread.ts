import { Worker } from "node:worker_threads";
import { JOB_WORKER } from "./entries.ts";
import type { Urgency } from "./give-way.ts";
import { JobFailure, type Job, type JobResults, type JobRunner } from "./job.ts";
import type { JobMessage, JobReply } from "./job-reply.ts";

/** Megabytes (2^20 bytes) of the thread's heap for new objects. It would grow to three times 16 MB, and stay. */
const YOUNG_MB = 6;

/** Milliseconds without a job after which the thread ends. Starting one takes 0.2 s of CPU, an idle one keeps 100 MB. */
const IDLE_MS = 10_000;

/**
 * One worker thread of low priority for jobs. It starts with the first job and ends after an idle period. An idle thread
 * does not keep the process alive.
 */
export class JobThread implements JobRunner {
  #worker: Worker | undefined;
  #nextId = 0;
  #idle: NodeJS.Timeout | undefined;
  readonly #waiting = new Map<number, PromiseWithResolvers<JobReply["result"]>>();
  readonly #urgency: Urgency;

  /** @param urgency says when the thread must not rest */
  constructor(urgency: Urgency) {
    this.#urgency = urgency;
  }

  async run<Kind extends Job>(job: Kind): Promise<JobResults[Kind["kind"]]> {
    const worker = (this.#worker ??= this.#start());
    const id = this.#nextId++;
    clearTimeout(this.#idle);
    const waiting = Promise.withResolvers<JobReply["result"]>();
    this.#waiting.set(id, waiting);
    worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage({ id, job } satisfies JobMessage);
    try {
      return (await waiting.promise) as JobResults[Kind["kind"]];
    } finally {
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) {
        this.#worker?.unref();
        this.#idle = setTimeout(() => void this.rest(), IDLE_MS).unref();
      }
    }
  }

  /** Ends the thread if it has no job, which frees its memory. The next job starts another thread. */
  async rest(): Promise<void> {
    if (this.#waiting.size === 0) await this.close();
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#rejectAll(new Error("the thread for jobs on packs was ended"));
    await worker?.terminate();
  }

  #rejectAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
  }

  #start(): Worker {
    const worker = new Worker(JOB_WORKER, {
      workerData: this.#urgency.memory,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on("message", ({ id, result, failure }: JobReply) => {
      if (failure === undefined) this.#waiting.get(id)?.resolve(result);
      else this.#waiting.get(id)?.reject(new JobFailure(failure.message, failure.code));
    });
    const ended = (error: Error): void => {
      // A closed thread reports its end late, when another one may have started.
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#rejectAll(error);
    };
    worker.on("error", ended);
    worker.on("exit", () => ended(new Error("the thread for jobs on packs ended")));
    return worker;
  }
}
