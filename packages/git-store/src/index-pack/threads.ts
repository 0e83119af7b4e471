import type { Worker } from "node:worker_threads";
import type { Control } from "./control.ts";
import { errorOf } from "./failure.ts";
import type { PipelineJob, PipelineResult } from "./pipeline.ts";
import type { WorkerMessage, WorkerRequest } from "./worker.ts";
import type { IndexWorkers } from "./workers.ts";

/** Worker threads of one indexing run: one leader, and free threads that help to resolve deltas. */
export class IndexThreads {
  readonly result: Promise<PipelineResult>;
  readonly #job: PipelineJob;
  readonly #helpers: number;
  readonly #control: Control;
  readonly #workers: IndexWorkers;
  /** Number of threads that have not sent their last message. */
  readonly #busy = new Set<Worker>();
  readonly #given: Promise<void>[] = [];
  readonly #settled: PromiseWithResolvers<PipelineResult>;
  #stopped = false;

  constructor(job: PipelineJob, count: number, control: Control, workers: IndexWorkers) {
    this.#job = job;
    this.#helpers = count - 1;
    this.#control = control;
    this.#workers = workers;
    this.#settled = Promise.withResolvers();
    this.result = this.#settled.promise;
    // The caller may await the promise later. Until then a rejection must not count as unhandled.
    this.result.catch(() => undefined);
    this.#lead().catch(this.#settled.reject);
  }

  async #lead(): Promise<void> {
    const worker = await this.#workers.take();
    if (this.#stopped) await this.#workers.give(worker);
    else this.#send(worker, { kind: "lead", job: this.#job });
  }

  #send(worker: Worker, request: WorkerRequest): void {
    this.#busy.add(worker);
    worker.on("message", (message: WorkerMessage) => this.#receive(worker, message));
    worker.on("error", this.#settled.reject);
    worker.on("exit", (code) => {
      this.#settled.reject(new Error(`an indexing thread ended early (exit code ${code})`));
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage(request);
  }

  #receive(worker: Worker, message: WorkerMessage): void {
    if (message.kind === "scanned") {
      for (let helper = 0; helper < this.#helpers; helper++) {
        const free = this.#workers.tryTake();
        if (free !== undefined) this.#send(free, { kind: "help", job: this.#job, share: message.share });
      }
      return;
    }
    this.#busy.delete(worker);
    this.#given.push(this.#workers.give(worker));
    if (message.kind === "done") this.#settled.resolve(message.result);
    else if (message.kind === "failed") this.#settled.reject(errorOf(message.failure));
  }

  /** Terminates the threads that still run. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#control.abort();
    await Promise.all([...this.#busy].map((worker) => this.#workers.discard(worker)));
    await Promise.all(this.#given);
  }
}
