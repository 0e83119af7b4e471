import { Worker } from "node:worker_threads";
import type { Control } from "./control.ts";
import { errorOf } from "./failure.ts";
import type { PipelineJob, PipelineResult } from "./pipeline.ts";
import type { WorkerInput, WorkerMessage } from "./worker.ts";

/** The worker threads of one indexing run: one that leads, the others help it with the deltas. */
export class IndexThreads {
  readonly result: Promise<PipelineResult>;
  readonly #control: Control;
  readonly #workers: Worker[];

  /** @param entry the module that the threads run; a bundle has it elsewhere */
  constructor(job: PipelineJob, count: number, control: Control, entry: URL) {
    this.#control = control;
    const start = (role: WorkerInput["role"]): Worker => new Worker(entry, { workerData: { role, job } });
    const lead = start("lead");
    const helpers = Array.from({ length: count - 1 }, () => start("help"));
    this.#workers = [lead, ...helpers];
    this.result = new Promise((resolve, reject) => {
      for (const worker of this.#workers) {
        worker.on("message", (message: WorkerMessage) => {
          if (message.kind === "done") resolve(message.result);
          else if (message.kind === "failed") reject(errorOf(message.failure));
          // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
          else for (const helper of helpers) helper.postMessage(message.share);
        });
        worker.on("error", reject);
      }
      lead.on("exit", (code) => reject(new Error(`the indexing thread ended early (exit code ${code})`)));
    });
    // Whoever awaits it later gets the rejection; until then it is not an unhandled one.
    this.result.catch(() => undefined);
  }

  /** Ends all threads, whatever they are doing. */
  async stop(): Promise<void> {
    this.#control.abort();
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
