import { parentPort } from "node:worker_threads";
import { messageOf, systemCode } from "@devplat/base";
import { Serializer } from "@devplat/base/serializer";
import type { Job, JobResults } from "./job.ts";
import { runJob } from "./run-job.ts";

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

const jobs = new Serializer();

/** Runs a job in this worker thread, one after another, and answers with one message. */
export async function replyTo({ id, job }: JobMessage): Promise<void> {
  const reply = (content: Omit<JobReply, "id">): void => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
    parentPort?.postMessage({ id, ...content } satisfies JobReply);
  };
  await jobs.run(async () => {
    try {
      reply({ result: await runJob(job) });
    } catch (error) {
      reply({ failure: { message: messageOf(error), code: systemCode(error) } });
    }
  });
}
