import { IndexWorkers } from "@devplat/git-store";
import { INDEX_THREAD } from "./entries.ts";
import { Urgency } from "./give-way.ts";
import type { JobRunner } from "./job.ts";
import { JobThread } from "./job-thread.ts";
import { WarmJobs } from "./warm-jobs.ts";

/** Milliseconds without a pack after which indexing threads end. An idle one keeps 40 MB and more. */
const IDLE_MS = 10_000;

/** Worker threads that all mirrors of a process share. They start with their first work. */
export interface MirrorThreads {
  /** Says when a request waits for the work of a thread. */
  readonly urgency: Urgency;
  readonly index: IndexWorkers;
  /** For fills and for opening. */
  readonly checks: JobRunner;
  /** For repacks and repairs: a fill that a request waits for must not wait for those. */
  readonly maintenance: JobRunner;
  close(): Promise<void>;
}

export function createMirrorThreads(): MirrorThreads {
  const urgency = new Urgency();
  const index = new IndexWorkers({
    entry: INDEX_THREAD,
    keep: 1,
    idleMs: IDLE_MS,
    workerData: urgency.memory,
  });
  const separate = new JobThread(urgency);
  const checks = new WarmJobs(index, separate);
  const maintenance = new JobThread(urgency);
  return {
    urgency,
    index,
    checks,
    maintenance,
    close: async () => {
      await index.close();
      await checks.close();
      await separate.close();
      await maintenance.close();
    },
  };
}
