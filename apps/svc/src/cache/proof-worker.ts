/** What the thread runs that proves packs: one job after the other, each answered with one message. */
import { parentPort } from "node:worker_threads";
import { messageOf, systemCode } from "@devplat/base";
import { doProofJob, type ProofJob } from "./proof-job.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

export interface ProofRequest {
  readonly id: number;
  readonly job: ProofJob;
}

export interface ProofAnswer {
  readonly id: number;
  /** Undefined: proven. */
  readonly failure: { readonly message: string; readonly code: string | undefined } | undefined;
}

lowerThreadPriority();
let last: Promise<void> = Promise.resolve();
parentPort?.on("message", ({ id, job }: ProofRequest) => {
  const answer = (failure: ProofAnswer["failure"]): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    parentPort?.postMessage({ id, failure } satisfies ProofAnswer);
  };
  last = last.then(async () => {
    try {
      await doProofJob(job);
      answer(undefined);
    } catch (error) {
      answer({ message: messageOf(error), code: systemCode(error) });
    }
  });
});
