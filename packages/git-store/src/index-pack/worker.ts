/**
 * What the worker threads of `indexPack` run: one job after the other, each answered by one last message.
 */
import { parentPort } from "node:worker_threads";
import { failureOf, type Failure } from "./failure.ts";
import {
  helpResolve,
  leadPipeline,
  type PipelineJob,
  type PipelineResult,
  type ScanShare,
} from "./pipeline.ts";

/** What a worker is asked. */
export type WorkerRequest =
  | { readonly kind: "lead"; readonly job: PipelineJob }
  | { readonly kind: "help"; readonly job: PipelineJob; readonly share: ScanShare };

/** What a worker says. All but `scanned` are last words. */
export type WorkerMessage =
  | { readonly kind: "scanned"; readonly share: ScanShare }
  | { readonly kind: "done"; readonly result: PipelineResult }
  | { readonly kind: "helped" }
  | { readonly kind: "failed"; readonly failure: Failure };

const port = parentPort;
const say = (message: WorkerMessage): void => port?.postMessage(message);
port?.on("message", (request: WorkerRequest) => {
  try {
    if (request.kind === "lead") {
      say({ kind: "done", result: leadPipeline(request.job, (share) => say({ kind: "scanned", share })) });
    } else {
      helpResolve(request.job, request.share);
      say({ kind: "helped" });
    }
  } catch (error) {
    say({ kind: "failed", failure: failureOf(error) });
  }
});
