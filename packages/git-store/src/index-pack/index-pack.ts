import { existsSync } from "node:fs";
import { chmod, open, rename, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectFormat } from "@devplat/git-protocol";
import { syncFile, syncFolder } from "../durable.ts";
import { GitStoreError } from "../errors.ts";
import type { ObjectDatabase } from "../object-database.ts";
import { temporaryName } from "../repository/leftovers.ts";
import { Control } from "./control.ts";
import {
  DEFAULT_DELTA_WINDOW_BYTES,
  DEFAULT_LIMITS,
  DEFAULT_PACK_WINDOW_BYTES,
  expandedLimit,
  type IndexPackLimits,
} from "./limits.ts";
import type { PipelineJob, PipelineResult } from "./pipeline.ts";
import { IndexThreads } from "./threads.ts";
import { IndexWorkers } from "./workers.ts";

/**
 * Smaller packs are indexed in the calling thread if there are no warm workers. That takes a few milliseconds, and
 * starting a thread takes about 50 ms.
 */
const INLINE_PACK_BYTES = 512 * 1024;
/** Maximum inflated bytes of these packs. A pack that expands to more is indexed by a thread. */
const INLINE_EXPANDED_BYTES = 32 * 2 ** 20;

/** Options of {@link indexPack}. */
export interface IndexPackOptions {
  /** The `objects/pack` folder that receives the pack. It must exist. */
  readonly folder: string;
  /** Default `sha1`. */
  readonly format?: ObjectFormat;
  /** Store with the bases of a thin pack. Without it a thin pack is refused. */
  readonly bases?: ObjectDatabase;
  /**
   * Number of worker threads. Default 1. With 0 the calling thread indexes the pack after its last byte has arrived. A
   * hostile pack can then block that thread for many seconds. Without `workers`, the calling thread also indexes packs of
   * less than half a megabyte, unless they expand to more than 32 MiB.
   */
  readonly threads?: number;
  readonly limits?: Partial<IndexPackLimits>;
  /** Stops the run; the promise rejects with the signal's reason, and nothing is stored. */
  readonly signal?: AbortSignal;
  /** Memory for objects that deltas are applied to, bytes per thread. Default 32 MiB. */
  readonly deltaWindowBytes?: number;
  /** Memory for pages of the pack, bytes over all threads. Default 16 MiB. */
  readonly packWindowBytes?: number;
  /**
   * Refuses objects of a SHA-1 collision attack, at about twice the cost of hashing. Default true.
   */
  readonly detectCollisions?: boolean;
  /**
   * Maximum bytes that `source` is read ahead of the scanning thread. Default: no limit, for a connection that must
   * not be slowed down. With a limit the calling thread works no faster than the scanning thread, which may have a
   * lower priority. That suits a source that can wait, such as a file.
   */
  readonly maxAheadBytes?: number;
  /** Pool of threads that live between packs, for services. Without it each pack starts and ends its threads. */
  readonly workers?: IndexWorkers;
}

/** A pack that is in the store. */
export interface IndexedPack extends PipelineResult {
  /** `pack-<checksum>`. */
  readonly name: string;
  /** Path of the `.pack` file. `.idx` and `.rev` are in the same folder. */
  readonly packPath: string;
}

/**
 * Indexes a pack as it arrives. It writes a temporary file, finds and hashes every object, completes a thin pack, and
 * writes `.idx` and `.rev` as stock git does. Then it renames the files, the `.idx` last.
 *
 * Memory: about 53 bytes per object (SHA-1), and the windows of the options.
 * It does not check that the objects which the pack refers to exist. `checkPackConnected` does that.
 *
 * @param source the bytes of the pack, without anything after its trailer. A part is not read after the next is requested
 * @throws {GitStoreError} for a faulty pack; system errors unchanged (`ENOSPC`); the reason of the signal.
 *   Nothing is stored then.
 */
export async function indexPack(
  source: AsyncIterable<Uint8Array>,
  options: IndexPackOptions,
): Promise<IndexedPack> {
  options.signal?.throwIfAborted();
  const { folder } = options;
  const temporary = {
    pack: join(folder, temporaryName("pack")),
    rev: join(folder, temporaryName("rev")),
    idx: join(folder, temporaryName("idx")),
  };
  const handle = await open(temporary.pack, "wx+", 0o600);
  let result: PipelineResult;
  try {
    try {
      result = await receive(source, handle, jobOf(options, temporary), options);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return await publish(folder, temporary, result);
  } catch (error) {
    for (const path of Object.values(temporary)) await unlink(path).catch(() => undefined);
    throw error;
  }
}

type TemporaryNames = Readonly<Record<"pack" | "rev" | "idx", string>>;

function jobOf(options: IndexPackOptions, temporary: TemporaryNames): PipelineJob {
  const threads = Math.max(1, options.threads ?? 1);
  return {
    packPath: temporary.pack,
    indexPath: temporary.idx,
    reversePath: temporary.rev,
    format: options.format ?? "sha1",
    detectCollisions: options.detectCollisions !== false && (options.format ?? "sha1") === "sha1",
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    deltaWindowBytes: options.deltaWindowBytes ?? DEFAULT_DELTA_WINDOW_BYTES,
    packWindowBytes: (options.packWindowBytes ?? DEFAULT_PACK_WINDOW_BYTES) / threads,
    control: new Control().memory,
    bases: options.bases?.shared(),
  };
}

/** Writes the pack while threads read it, or writes it and then reads it in this thread. */
async function receive(
  source: AsyncIterable<Uint8Array>,
  handle: FileHandle,
  job: PipelineJob,
  options: IndexPackOptions,
): Promise<PipelineResult> {
  const control = new Control(job.control);
  const threadCount = options.threads ?? 1;
  const inlineBytes = options.workers === undefined ? INLINE_PACK_BYTES : 0;
  const { signal } = options;
  const stopper = new Stopper();
  const onAbort = (): void => stopper.stop(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) onAbort();
  const iterator = source[Symbol.asyncIterator]();
  let threads: IndexThreads | undefined;
  const startThreads = (of: PipelineJob, by: Control): IndexThreads => {
    const pool = options.workers ?? new IndexWorkers({ max: threadCount, keep: 0 });
    const started = new IndexThreads(of, threadCount, by, pool);
    started.result.catch((error: unknown) => stopper.stop(error));
    return started;
  };
  let ended = false;
  try {
    let written = 0;
    for (;;) {
      const next = await stopper.orStopped(iterator.next());
      if (next.done === true) break;
      written = await append(handle, next.value, written, job.limits.packBytes);
      if (threads === undefined && threadCount > 0 && written > inlineBytes) {
        threads = startThreads(job, control);
      }
      control.wrote(written);
      if (threads !== undefined && options.maxAheadBytes !== undefined) {
        await stopper.orStopped(control.waitForScanner(written, options.maxAheadBytes));
      }
    }
    ended = true;
    control.end();
    if (threads === undefined) {
      // Loaded on demand: worker threads load it themselves, so a service does not need it here.
      const { leadPipeline } = await import("./pipeline.ts");
      if (threadCount === 0) return leadPipeline(job, () => undefined);
      const expandedBytes = Math.min(INLINE_EXPANDED_BYTES, expandedLimit(job.limits, written));
      try {
        return leadPipeline({ ...job, limits: { ...job.limits, expandedBytes } }, () => undefined);
      } catch (error) {
        if (!isTooLarge(error)) throw error;
      }
      // A thread reads the complete file with the limits of the caller.
      const again = new Control();
      again.wrote(written);
      again.end();
      threads = startThreads({ ...job, control: again.memory }, again);
    }
    return await stopper.orStopped(threads.result);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    await threads?.stop();
    // Not awaited, because a source that hangs would block here.
    if (!ended) void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof GitStoreError && (error.code === "too_large" || error.code === "delta_bomb");
}

async function append(
  handle: FileHandle,
  chunk: Uint8Array,
  position: number,
  limit: number,
): Promise<number> {
  if (position + chunk.length > limit) {
    throw new GitStoreError("too_large", `index pack: more than ${limit} bytes`);
  }
  let done = 0;
  while (done < chunk.length) {
    done += (await handle.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
  }
  return position + done;
}

/** Waits for a promise or an early end. Unlike `Promise.race` with a long-lived promise it leaks no memory. */
class Stopper {
  #stopped: { readonly reason: unknown } | undefined;
  #reject: ((reason: unknown) => void) | undefined;

  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#reject?.(reason);
  }

  async orStopped<T>(promise: Promise<T>): Promise<T> {
    promise.catch(() => undefined);
    if (this.#stopped !== undefined) throw this.#stopped.reason;
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject;
      promise.then(resolve, reject);
    });
  }
}

/** Renames the files. The `.idx` comes last, because readers see a pack once its `.idx` exists. */
async function publish(
  folder: string,
  temporary: TemporaryNames,
  result: PipelineResult,
): Promise<IndexedPack> {
  const name = `pack-${result.checksum}`;
  const packPath = join(folder, `${name}.pack`);
  const indexed: IndexedPack = { ...result, name, packPath };
  if (existsSync(packPath) && existsSync(join(folder, `${name}.idx`))) {
    // The store has this pack already: the name is a hash of its bytes.
    for (const path of Object.values(temporary)) await unlink(path);
    return indexed;
  }
  await chmod(temporary.pack, 0o444);
  await syncFile(temporary.rev);
  await syncFile(temporary.idx);
  await rename(temporary.pack, packPath);
  await rename(temporary.rev, join(folder, `${name}.rev`));
  // These files must be on disk before the .idx, which makes the pack visible.
  await syncFolder(folder);
  await rename(temporary.idx, join(folder, `${name}.idx`));
  await syncFolder(folder);
  return indexed;
}
