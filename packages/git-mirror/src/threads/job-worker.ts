/** Module that a job thread runs. It answers each job with one message, one job after another. */
import { parentPort } from "node:worker_threads";
import { messageOf, systemCode } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import { giveWayInThread } from "./give-way.ts";
import { runJob, type Job, type JobResults } from "./job.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

export interface JobMessage {
  readonly id: number;
  readonly job: Job;
}

export interface JobReply {
  readonly id: number;
  readonly result?: JobResults[Job["kind"]];
  /** Undefined: the job succeeded. */
  readonly failure?: { readonly message: string; readonly code: string | undefined };
}

lowerThreadPriority();
giveWayInThread();
const jobs = new Serializer();
parentPort?.on("message", ({ id, job }: JobMessage) => {
  const reply = (content: Omit<JobReply, "id">): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    parentPort?.postMessage({ id, ...content } satisfies JobReply);
  };
  void jobs.run(async () => {
    try {
      reply({ result: await runJob(job) });
    } catch (error) {
      reply({ failure: { message: messageOf(error), code: systemCode(error) } });
    }
  });
});
