import { systemCode } from "@devplat/base";
import { Semaphore } from "@devplat/base/semaphore";
import { Worker } from "node:worker_threads";
import { AgentError } from "../../errors.ts";
import type { EditAnswer, EditJob, EditResults } from "./edit-job.ts";
import { unpackError } from "./packed-error.ts";

/** Megabytes (2^20 bytes) of the thread's heap. A megabyte of YAML takes up to 150, TOML as much. */
const MAX_HEAP_MB = 2048;

/** Megabytes (2^20 bytes) of that heap for new objects: with the daemon's own 3 much more is copied. */
const YOUNG_MB = 24;

/** Milliseconds without a job after which the thread ends, and its memory is free again. */
const IDLE_MS = 5000;

/** Settings of {@link EditThread}, for tests. */
export interface EditThreadOptions {
  /** Megabytes (2^20 bytes) that a job may take. Default 2048. */
  readonly heapMb?: number;
  /** Milliseconds without a job after which the thread ends. Default 5000. */
  readonly idleMs?: number;
}

/**
 * One thread that reads and edits large files, so that nothing else in the program waits for it. Started when it is
 * first needed, one job at a time, ended when it has had nothing to do for a while. While idle it keeps no process alive.
 */
export class EditThread {
  readonly #heapMb: number;
  readonly #idleMs: number;
  readonly #turns = new Semaphore(1);
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;

  constructor({ heapMb = MAX_HEAP_MB, idleMs = IDLE_MS }: EditThreadOptions = {}) {
    this.#heapMb = heapMb;
    this.#idleMs = idleMs;
  }

  /** The thread, while there is one. */
  get worker(): Worker | undefined {
    return this.#worker;
  }

  /**
   * Does a job in the thread.
   * @param signal ends it in the middle
   * @throws AgentError `edit_failed` if the thread ended or ran out of memory; the reason of the signal; what the job throws
   */
  async do<Job extends EditJob>(job: Job, signal?: AbortSignal): Promise<EditResults[Job["kind"]]> {
    const release = await this.#turns.acquire(signal);
    clearTimeout(this.#idle);
    try {
      const answer = await this.#ask((this.#worker ??= this.#start()), job, signal);
      if ("failure" in answer) throw unpackError(answer.failure);
      return answer.result as EditResults[Job["kind"]];
    } finally {
      this.#worker?.unref();
      this.#idle = setTimeout(() => void this.#end(), this.#idleMs).unref();
      release();
    }
  }

  async #ask(worker: Worker, job: EditJob, signal: AbortSignal | undefined): Promise<EditAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<EditAnswer>();
    const onError = (error: unknown): void => reject(this.#failureOf(error));
    const onExit = (): void => reject(this.#failureOf(undefined));
    const onAbort = (): void => reject(signal?.reason as Error);
    worker.on("message", resolve).on("error", onError).on("exit", onExit);
    signal?.addEventListener("abort", onAbort);
    worker.ref();
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
      worker.postMessage(job);
      return await promise;
    } catch (error) {
      await this.#end();
      throw error;
    } finally {
      worker.off("message", resolve).off("error", onError).off("exit", onExit);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  #start(): Worker {
    const worker = new Worker(new URL("edit-worker.ts", import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMb, maxYoungGenerationSizeMb: YOUNG_MB },
    });
    // Without a listener it would end the program.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #failureOf(error: unknown): AgentError {
    if (systemCode(error) === "ERR_WORKER_OUT_OF_MEMORY") {
      const message = `the file is too large to be edited: that takes more than ${this.#heapMb} MB of memory`;
      return new AgentError("edit_failed", message);
    }
    return new AgentError("edit_failed", "the thread that edits large files ended", { remedy: "retry" });
  }
}
