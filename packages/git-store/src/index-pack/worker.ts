/**
 * Entry of the worker threads of `indexPack`. The first leads; the others wait for its tables.
 */
import { parentPort, workerData } from "node:worker_threads";
import { failureOf, type Failure } from "./failure.ts";
import {
  helpResolve,
  leadPipeline,
  type PipelineJob,
  type PipelineResult,
  type ScanShare,
} from "./pipeline.ts";

/** What a worker is started with. */
export interface WorkerInput {
  readonly role: "lead" | "help";
  readonly job: PipelineJob;
}

/** What a worker says. */
export type WorkerMessage =
  | { readonly kind: "scanned"; readonly share: ScanShare }
  | { readonly kind: "done"; readonly result: PipelineResult }
  | { readonly kind: "failed"; readonly failure: Failure };

const port = parentPort;
if (port !== null) {
  const { role, job } = workerData as WorkerInput;
  const say = (message: WorkerMessage): void => port.postMessage(message);
  if (role === "lead") {
    try {
      say({ kind: "done", result: leadPipeline(job, (share) => say({ kind: "scanned", share })) });
    } catch (error) {
      say({ kind: "failed", failure: failureOf(error) });
    }
  } else {
    port.once("message", (share: ScanShare) => {
      try {
        helpResolve(job, share);
      } catch (error) {
        say({ kind: "failed", failure: failureOf(error) });
      }
      port.close();
    });
  }
}
