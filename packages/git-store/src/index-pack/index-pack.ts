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
  type IndexPackLimits,
} from "./limits.ts";
import type { PipelineJob, PipelineResult } from "./pipeline.ts";
import { IndexThreads } from "./threads.ts";
import { IndexWorkers } from "./workers.ts";

/**
 * Without threads that are kept warm, smaller packs are indexed in the calling thread: that takes a few milliseconds,
 * starting a thread some fifty.
 */
const INLINE_PACK_BYTES = 512 * 1024;

/** Options of {@link indexPack}. */
export interface IndexPackOptions {
  /** The `objects/pack` folder that the pack goes to. Must exist. */
  readonly folder: string;
  /** Default `sha1`. */
  readonly format?: ObjectFormat;
  /** Where the bases of a thin pack are found. Without it a thin pack is refused. */
  readonly bases?: ObjectDatabase;
  /**
   * Worker threads. Default 1. With 0 everything is done in the calling thread, after the last byte has come; a
   * hostile pack can then hold that thread for many seconds. The same goes for packs of less than half a megabyte when
   * `workers` is not given.
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
   * Refuses objects that were made for a collision attack on SHA-1, at some 30 times the cost of hashing. Default: not
   * looked at.
   */
  readonly detectCollisions?: boolean;
  /**
   * Bytes that `source` is read ahead of the thread that scans them. Without it, `source` is read as fast as it gives
   * and the disk takes: right for a connection that must not be held up. For a source that can wait, such as a file,
   * the calling thread then works no faster than the scanning one, which may have a lower priority.
   */
  readonly maxAheadBytes?: number;
  /** Threads that are kept between packs; a service should have them. Without it a pack starts and ends its own. */
  readonly workers?: IndexWorkers;
}

/** A pack that is in the store. */
export interface IndexedPack extends PipelineResult {
  /** `pack-<checksum>`. */
  readonly name: string;
  /** Of the `.pack` file; `.idx` and `.rev` stand beside it. */
  readonly packPath: string;
}

/**
 * Takes in a pack as it arrives: writes it aside, finds and hashes every object, completes it when thin, writes
 * `.idx` and `.rev` as stock git does, and only then gives the files their names, the `.idx` last.
 *
 * Memory: about 49 bytes per object (SHA-1) and the windows of the options, whatever the pack's size.
 * That the objects which the pack refers to are there is not looked at: see `checkPackConnected`.
 *
 * @param source the bytes of the pack and nothing else
 * @throws {GitStoreError} when the pack is at fault; system errors as they are (`ENOSPC`); the reason of the signal.
 *   Nothing is stored then.
 */
export async function indexPack(
  source: AsyncIterable<Uint8Array>,
  options: IndexPackOptions,
): Promise<IndexedPack> {
  options.signal?.throwIfAborted();
  const { folder } = options;
  const aside = {
    pack: join(folder, temporaryName("pack")),
    rev: join(folder, temporaryName("rev")),
    idx: join(folder, temporaryName("idx")),
  };
  const handle = await open(aside.pack, "wx+", 0o600);
  let result: PipelineResult;
  try {
    try {
      result = await receive(source, handle, jobOf(options, aside), options);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return await publish(folder, aside, result);
  } catch (error) {
    for (const path of Object.values(aside)) await unlink(path).catch(() => undefined);
    throw error;
  }
}

type AsideNames = Readonly<Record<"pack" | "rev" | "idx", string>>;

function jobOf(options: IndexPackOptions, aside: AsideNames): PipelineJob {
  const threads = Math.max(1, options.threads ?? 1);
  return {
    packPath: aside.pack,
    indexPath: aside.idx,
    reversePath: aside.rev,
    format: options.format ?? "sha1",
    detectCollisions: options.detectCollisions === true && (options.format ?? "sha1") === "sha1",
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    deltaWindowBytes: options.deltaWindowBytes ?? DEFAULT_DELTA_WINDOW_BYTES,
    packWindowBytes: (options.packWindowBytes ?? DEFAULT_PACK_WINDOW_BYTES) / threads,
    control: new Control().memory,
    bases: options.bases?.shared(),
  };
}

/** Writes the pack while threads read behind; or writes it, then reads it here. */
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
  let ended = false;
  try {
    let written = 0;
    for (;;) {
      const next = await stopper.orStopped(iterator.next());
      if (next.done === true) break;
      written = await append(handle, next.value, written, job.limits.packBytes);
      if (threads === undefined && threadCount > 0 && written > inlineBytes) {
        threads = new IndexThreads(
          job,
          threadCount,
          control,
          options.workers ?? new IndexWorkers({ max: threadCount, keep: 0 }),
        );
        threads.result.catch((error: unknown) => stopper.stop(error));
      }
      control.wrote(written);
      if (threads !== undefined && options.maxAheadBytes !== undefined) {
        await stopper.orStopped(control.waitForScanner(written, options.maxAheadBytes));
      }
    }
    ended = true;
    control.end();
    if (threads === undefined) {
      // Threads load it themselves, and a service has some.
      const { leadPipeline } = await import("./pipeline.ts");
      return leadPipeline(job, () => undefined);
    }
    return await stopper.orStopped(threads.result);
  } finally {
    signal?.removeEventListener("abort", onAbort);
    await threads?.stop();
    // Not awaited: a source that hangs would hang here too.
    if (!ended) void Promise.resolve(iterator.return?.()).catch(() => undefined);
  }
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

/** Lets a wait end early. Unlike `Promise.race` with one long-lived promise it leaves nothing behind at each wait. */
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

/** Order matters: readers take a pack for there when its `.idx` is. */
async function publish(folder: string, aside: AsideNames, result: PipelineResult): Promise<IndexedPack> {
  const name = `pack-${result.checksum}`;
  const packPath = join(folder, `${name}.pack`);
  const indexed: IndexedPack = { ...result, name, packPath };
  if (existsSync(packPath) && existsSync(join(folder, `${name}.idx`))) {
    // The same pack came before; the name is a hash of its bytes.
    for (const path of Object.values(aside)) await unlink(path);
    return indexed;
  }
  await chmod(aside.pack, 0o444);
  await syncFile(aside.rev);
  await syncFile(aside.idx);
  await rename(aside.pack, packPath);
  await rename(aside.rev, join(folder, `${name}.rev`));
  // On the disk before the name that makes them count.
  await syncFolder(folder);
  await rename(aside.idx, join(folder, `${name}.idx`));
  await syncFolder(folder);
  return indexed;
}
