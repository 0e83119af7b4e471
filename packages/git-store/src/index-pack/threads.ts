import type { Worker } from "node:worker_threads";
import type { Control } from "./control.ts";
import { errorOf } from "./failure.ts";
import type { PipelineJob, PipelineResult } from "./pipeline.ts";
import type { WorkerMessage, WorkerRequest } from "./worker.ts";
import type { IndexWorkers } from "./workers.ts";

/** The worker threads of one indexing run: one that leads, the others help it with the deltas. */
export class IndexThreads {
  readonly result: Promise<PipelineResult>;
  readonly #control: Control;
  readonly #workers: IndexWorkers;
  /** Threads that have not said their last word. */
  readonly #busy = new Set<Worker>();
  readonly #given: Promise<void>[] = [];
  readonly #settled: PromiseWithResolvers<PipelineResult>;

  constructor(job: PipelineJob, count: number, control: Control, workers: IndexWorkers) {
    this.#control = control;
    this.#workers = workers;
    this.#settled = Promise.withResolvers();
    this.result = this.#settled.promise;
    // Whoever awaits it later gets the rejection; until then it is not an unhandled one.
    this.result.catch(() => undefined);
    const helpers = count - 1;
    this.#ask({ kind: "lead", job }, (message) => {
      if (message.kind !== "scanned") return;
      for (let helper = 0; helper < helpers; helper++) this.#ask({ kind: "help", job, share: message.share });
    });
  }

  #ask(request: WorkerRequest, onMessage: (message: WorkerMessage) => void = () => undefined): void {
    const worker = this.#workers.take();
    this.#busy.add(worker);
    worker.on("message", (message: WorkerMessage) => {
      onMessage(message);
      if (message.kind === "scanned") return;
      this.#busy.delete(worker);
      this.#given.push(this.#workers.give(worker));
      if (message.kind === "done") this.#settled.resolve(message.result);
      else if (message.kind === "failed") this.#settled.reject(errorOf(message.failure));
    });
    worker.on("error", this.#settled.reject);
    worker.on("exit", (code) => {
      this.#settled.reject(new Error(`an indexing thread ended early (exit code ${code})`));
    });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    worker.postMessage(request);
  }

  /** Ends what still runs, whatever it is doing. */
  async stop(): Promise<void> {
    this.#control.abort();
    await Promise.all([...this.#busy].map((worker) => worker.terminate()));
    await Promise.all(this.#given);
  }
}
