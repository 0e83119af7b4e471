import { Worker } from "node:worker_threads";
import { CHECK_WORKER } from "./entries.ts";
import type { Urgency } from "./give-way.ts";
import type { ProofJob, ProofResults } from "./check-job.ts";
import type { ProofAnswer, ProofRequest } from "./check-worker.ts";

/** What a proof found wrong, as it crossed the threads; `code` is git-store's or the system's. */
export class ProofFailure extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.name = "ProofFailure";
    this.code = code;
  }
}

/** Megabytes (2^20 bytes) of the thread's heap for new objects. */
const YOUNG_MB = 6;

/** Milliseconds without a job after which the thread ends. Starting one takes 0.2 s of CPU, an idle one keeps 100 MB. */
const IDLE_MS = 10_000;

/**
 * One thread of low priority for proofs, started when it is first needed, ended when it has had nothing to do for a
 * while. While idle it keeps no process alive.
 */
export class ProofThread {
  #worker: Worker | undefined;
  #nextId = 0;
  #idle: NodeJS.Timeout | undefined;
  readonly #waiting = new Map<number, PromiseWithResolvers<ProofAnswer["result"]>>();
  readonly #urgency: Urgency | undefined;

  /** @param urgency says when the thread must not give way. Default: it never gives way. */
  constructor(urgency?: Urgency) {
    this.#urgency = urgency;
  }

  /** @throws ProofFailure what was found wrong; any error if the thread ended */
  async do<Job extends ProofJob>(job: Job): Promise<ProofResults[Job["kind"]]> {
    const worker = (this.#worker ??= this.#start());
    const id = this.#nextId++;
    clearTimeout(this.#idle);
    const waiting = Promise.withResolvers<ProofAnswer["result"]>();
    this.#waiting.set(id, waiting);
    worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage({ id, job } satisfies ProofRequest);
    try {
      return (await waiting.promise) as ProofResults[Job["kind"]];
    } finally {
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) {
        this.#worker?.unref();
        this.#idle = setTimeout(() => void this.rest(), IDLE_MS).unref();
      }
    }
  }

  /** Ends the thread if it has nothing to do, which gives its memory back; the next job starts another. */
  async rest(): Promise<void> {
    if (this.#waiting.size === 0) await this.close();
  }

  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#rejectAll(new Error("the thread that proves packs was ended"));
    await worker?.terminate();
  }

  #rejectAll(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
  }

  #start(): Worker {
    const worker = new Worker(CHECK_WORKER, {
      workerData: this.#urgency?.memory,
      // The collector's room for what is new: it would grow to three times 16 MB, and stay.
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on("message", ({ id, result, failure }: ProofAnswer) => {
      if (failure === undefined) this.#waiting.get(id)?.resolve(result);
      else this.#waiting.get(id)?.reject(new ProofFailure(failure.message, failure.code));
    });
    const ended = (error: Error): void => {
      // One that was closed says so late, when another may be at work.
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#rejectAll(error);
    };
    worker.on("error", ended);
    worker.on("exit", () => ended(new Error("the thread that proves packs ended")));
    return worker;
  }
}
