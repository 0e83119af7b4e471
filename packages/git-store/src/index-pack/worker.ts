/**
 * Entry point of the worker threads of `indexPack`. Each thread runs one job after the other, and ends each with one
 * last message.
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

/** Job for a worker. */
export type WorkerRequest =
  | { readonly kind: "lead"; readonly job: PipelineJob }
  | { readonly kind: "help"; readonly job: PipelineJob; readonly share: ScanShare };

/** Message of a worker. Each kind except `scanned` ends the job. */
export type WorkerMessage =
  | { readonly kind: "scanned"; readonly share: ScanShare }
  | { readonly kind: "done"; readonly result: PipelineResult }
  | { readonly kind: "helped" }
  | { readonly kind: "failed"; readonly failure: Failure };

const port = parentPort;
const send = (message: WorkerMessage): void => port?.postMessage(message);
port?.on("message", (request: WorkerRequest) => {
  try {
    if (request.kind === "lead") {
      send({ kind: "done", result: leadPipeline(request.job, (share) => send({ kind: "scanned", share })) });
    } else if (request.kind === "help") {
      helpResolve(request.job, request.share);
      send({ kind: "helped" });
    }
    // A program's own entry may answer messages of other kinds.
  } catch (error) {
    send({ kind: "failed", failure: failureOf(error) });
  }
});
