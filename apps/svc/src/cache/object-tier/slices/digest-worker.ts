/** Module that a digest thread runs: one file, one message. */
import { parentPort, workerData } from "node:worker_threads";
import { digestFileHere } from "./digest-file.ts";

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
parentPort?.postMessage(await digestFileHere(workerData as string));
