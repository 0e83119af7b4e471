/** Module that a digest thread runs: one file, one message. */
import { parentPort, workerData } from "node:worker_threads";
import { digestFileHere } from "./digest-file.ts";

// No await here: a single executable runs CommonJS. A rejection ends the thread with its error.
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
void digestFileHere(workerData as string).then((digests) => parentPort?.postMessage(digests));
