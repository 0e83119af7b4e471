/** Code of the thread for large files: it runs one job after the other, and sends one message for each. */
import { parentPort } from "node:worker_threads";
import { doEditJob, type EditAnswer, type EditJob } from "./edit-job.ts";
import { packError } from "./packed-error.ts";

parentPort?.on("message", (job: EditJob) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
  parentPort?.postMessage(answerTo(job));
});

function answerTo(job: EditJob): EditAnswer {
  try {
    return { result: doEditJob(job) };
  } catch (error) {
    return { failure: packError(error) };
  }
}
