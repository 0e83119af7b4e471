/** Entry of the threads that index packs: the worker of git-store at a lower priority, which also runs jobs. */
import { parentPort } from "node:worker_threads";
import { giveWayInThread } from "./give-way.ts";
import type { JobMessage } from "./job-reply.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

lowerThreadPriority();
giveWayInThread();
// No await here: a single executable runs CommonJS.
void import("@devplat/git-store/index-worker").then(() =>
  parentPort?.on("message", (message: object) => {
    if ("job" in message && "id" in message) void runJob(message as JobMessage);
  }),
);

/** The modules of jobs are loaded with the first one. */
async function runJob(message: JobMessage): Promise<void> {
  const { replyTo } = await import("./job-reply.ts");
  await replyTo(message);
}
