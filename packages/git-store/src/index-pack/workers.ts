import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

/**
 * Heap for new objects of a thread, in units of 2^20 bytes. A larger heap delays garbage collection: it took 50 MB more
 * per thread, at the same speed.
 */
const WORKER_YOUNG_MB = 6;

/** Options of {@link IndexWorkers}. */
export interface IndexWorkersOptions {
  /** Maximum number of busy threads. Further packs are written to disk and wait. Default: the number of CPUs. */
  readonly max?: number;
  /** Maximum number of idle threads that are kept for the next pack. Default 2. */
  readonly keep?: number;
  /** Milliseconds after which idle threads end, to release their memory. Default: never. */
  readonly idleMs?: number;
  /** Module that the threads run. A bundled program passes its bundle of `@devplat/git-store/index-worker`. */
  readonly entry?: URL;
  /** Passed to each thread as its `workerData`. */
  readonly workerData?: unknown;
}

/**
 * Pool of worker threads for `indexPack`, limited in number. Idle threads stay warm between packs, because starting one
 * takes 0.2 s of CPU, as much as indexing 7 MB. They do not keep the process alive.
 */
export class IndexWorkers implements AsyncDisposable {
  readonly #max: number;
  readonly #keep: number;
  readonly #idleMs: number | undefined;
  readonly #entry: URL | undefined;
  readonly #workerData: unknown;
  readonly #waiting: ((worker: Worker) => void)[] = [];
  #idle: Worker[] = [];
  #resting: NodeJS.Timeout | undefined;
  #working = 0;
  #closed = false;

  constructor(options: IndexWorkersOptions = {}) {
    this.#max = Math.max(1, options.max ?? availableParallelism());
    this.#keep = options.keep ?? 2;
    this.#idleMs = options.idleMs;
    this.#entry = options.entry;
    this.#workerData = options.workerData;
  }

  /** Waits for an idle thread. Callers are served in order. */
  async take(): Promise<Worker> {
    return this.tryTake() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Returns a thread, or undefined when the maximum number is busy. */
  tryTake(): Worker | undefined {
    if (this.#working >= this.#max) return undefined;
    return this.#use(this.#idle.pop() ?? this.#start());
  }

  /** Returns an idle thread, or undefined: no thread starts. */
  tryTakeIdle(): Worker | undefined {
    const worker = this.#working < this.#max ? this.#idle.pop() : undefined;
    return worker === undefined ? undefined : this.#use(worker);
  }

  #use(worker: Worker): Worker {
    this.#working++;
    clearTimeout(this.#resting);
    quieten(worker);
    worker.ref();
    return worker;
  }

  #start(): Worker {
    const resourceLimits = { maxYoungGenerationSizeMb: WORKER_YOUNG_MB };
    const options = { workerData: this.#workerData, resourceLimits };
    if (this.#entry !== undefined) return new Worker(this.#entry, options);
    // Bundlers that bundle the modules of threads know only this form.
    return new Worker(new URL("./worker.ts", import.meta.url), options);
  }

  /** Returns a thread to the pool after its job. */
  async give(worker: Worker): Promise<void> {
    quieten(worker);
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next(worker);
      return;
    }
    this.#working--;
    if (this.#closed || this.#idle.length >= this.#keep) {
      await worker.terminate();
      return;
    }
    const forget = (): void => {
      this.#idle = this.#idle.filter((idle) => idle !== worker);
    };
    worker.once("error", forget);
    worker.once("exit", forget);
    worker.unref();
    this.#idle.push(worker);
    if (this.#idleMs === undefined) return;
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => void this.rest(), this.#idleMs).unref();
  }

  /** Terminates a busy thread, or removes one that has ended. */
  async discard(worker: Worker): Promise<void> {
    quieten(worker);
    await worker.terminate();
    this.#working--;
    const next = this.#waiting.shift();
    const replacement = next === undefined ? undefined : this.tryTake();
    if (replacement !== undefined) next?.(replacement);
  }

  /** Terminates idle threads to release their memory. The next pack starts new ones. */
  async rest(): Promise<void> {
    const idle = this.#idle;
    this.#idle = [];
    await Promise.all(idle.map((worker) => worker.terminate()));
  }

  /** Terminates idle threads now, and busy threads when they return. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.rest();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Removes the listeners of the pool. `removeAllListeners()` would also remove Node's, and stop all messages. */
function quieten(worker: Worker): void {
  for (const event of ["message", "error", "exit"]) worker.removeAllListeners(event);
}
