/** What the thread runs that proves packs: one job after the other, each answered with one message. */
import { parentPort } from "node:worker_threads";
import { messageOf, systemCode } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { doProofJob, type ProofJob, type ProofResults } from "./check-job.ts";
import { giveWayInThread } from "./give-way.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

export interface ProofRequest {
  readonly id: number;
  readonly job: ProofJob;
}

export interface ProofAnswer {
  readonly id: number;
  /** Undefined also when nothing is to be said. */
  readonly result?: ProofResults[ProofJob["kind"]];
  /** Undefined: done. */
  readonly failure?: { readonly message: string; readonly code: string | undefined };
}

lowerThreadPriority();
giveWayInThread();
const jobs = new Serializer();
parentPort?.on("message", ({ id, job }: ProofRequest) => {
  const answer = (said: Omit<ProofAnswer, "id">): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    parentPort?.postMessage({ id, ...said } satisfies ProofAnswer);
  };
  void jobs.run(async () => {
    try {
      answer({ result: await doProofJob(job) });
    } catch (error) {
      answer({ failure: { message: messageOf(error), code: systemCode(error) } });
    }
  });
});
