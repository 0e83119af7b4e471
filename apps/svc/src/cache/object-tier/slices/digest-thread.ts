import { stat } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { untilAborted } from "@devplat/base";
import { digestFileHere } from "./digest-file.ts";
import { DIGEST_WORKER } from "./entries.ts";
import type { ObjectDigest } from "./object-digest.ts";

/** Bytes from which on a thread is worth its start. Below, hashing takes less than 20 ms in all, in small steps. */
const IN_THREAD_BYTES = 8 << 20;
/** Megabytes (2^20 bytes) of the thread's heap for new objects. */
const YOUNG_MB = 2;

/**
 * Reads a file once and makes its checksums. Large files are hashed in a thread of their own, so that requests do not wait.
 *
 * @throws a system error, or the reason of the signal
 */
export async function digestFile(path: string, signal?: AbortSignal): Promise<ObjectDigest> {
  signal?.throwIfAborted();
  const { size } = await stat(path);
  if (size < IN_THREAD_BYTES) return await digestFileHere(path, signal);
  const worker = new Worker(DIGEST_WORKER, {
    workerData: path,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  const result = Promise.withResolvers<ObjectDigest>();
  worker.on("message", result.resolve);
  worker.on("error", result.reject);
  worker.on("exit", () => result.reject(new Error(`the thread that hashes ${path} ended`)));
  try {
    return await untilAborted(result.promise, signal);
  } finally {
    await worker.terminate();
  }
}
