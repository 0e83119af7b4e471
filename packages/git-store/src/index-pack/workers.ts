import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";

/**
 * Megabytes (2^20 bytes) of a thread's heap for new objects. With more, buffers that are done with wait longer for the next
 * collection: 50 MB a thread, at the same speed.
 */
const WORKER_YOUNG_MB = 6;

/** Options of {@link IndexWorkers}. */
export interface IndexWorkersOptions {
  /** Threads at work at once; further packs are written to disk meanwhile and wait. Default: the number of CPUs. */
  readonly max?: number;
  /** Idle threads that are kept for the next pack. Default 2. */
  readonly keep?: number;
  /** The module that the threads run. A program that is bundled gives one that imports this package's worker. */
  readonly entry?: URL;
  /** Given to each thread as its `workerData`. */
  readonly workerData?: unknown;
}

/**
 * Worker threads for `indexPack`, bounded in number, and kept warm between packs: starting one and compiling its code
 * takes 0.2 s of CPU, as much as indexing 7 MB. Idle threads do not keep the process alive.
 */
export class IndexWorkers implements AsyncDisposable {
  readonly #max: number;
  readonly #keep: number;
  readonly #entry: URL;
  readonly #workerData: unknown;
  readonly #waiting: ((worker: Worker) => void)[] = [];
  #idle: Worker[] = [];
  #working = 0;
  #closed = false;

  constructor(options: IndexWorkersOptions = {}) {
    this.#max = Math.max(1, options.max ?? availableParallelism());
    this.#keep = options.keep ?? 2;
    this.#entry = options.entry ?? new URL("worker.ts", import.meta.url);
    this.#workerData = options.workerData;
  }

  /** A thread that has nothing to do, as soon as there is one. First come, first served. */
  async take(): Promise<Worker> {
    return this.tryTake() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A thread, unless as many as may be are at work. */
  tryTake(): Worker | undefined {
    if (this.#working >= this.#max) return undefined;
    this.#working++;
    const worker = this.#idle.pop() ?? this.#start();
    quieten(worker);
    worker.ref();
    return worker;
  }

  #start(): Worker {
    const resourceLimits = { maxYoungGenerationSizeMb: WORKER_YOUNG_MB };
    return new Worker(this.#entry, { workerData: this.#workerData, resourceLimits });
  }

  /** Takes back a thread that has finished what it was asked. */
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
  }

  /** Ends a thread in the middle of its work, or counts off one that ended by itself. */
  async discard(worker: Worker): Promise<void> {
    quieten(worker);
    await worker.terminate();
    this.#working--;
    const next = this.#waiting.shift();
    const replacement = next === undefined ? undefined : this.tryTake();
    if (replacement !== undefined) next?.(replacement);
  }

  /** Ends idle threads, which gives their memory back; the next pack starts others. */
  async rest(): Promise<void> {
    const idle = this.#idle;
    this.#idle = [];
    await Promise.all(idle.map((worker) => worker.terminate()));
  }

  /** Ends idle threads, and others when they are given back. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.rest();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Takes our listeners off. Not `removeAllListeners()`: Node keeps some of its own there, and messages would stop. */
function quieten(worker: Worker): void {
  for (const event of ["message", "error", "exit"]) worker.removeAllListeners(event);
}
