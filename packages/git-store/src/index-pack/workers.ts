import { Worker } from "node:worker_threads";

/** Options of {@link IndexWorkers}. */
export interface IndexWorkersOptions {
  /** Idle threads that are kept for the next pack. Default 2. */
  readonly keep?: number;
  /** The module that the threads run. A program that is bundled gives one that imports this package's worker. */
  readonly entry?: URL;
}

/**
 * Worker threads for `indexPack`, kept warm between packs: starting one and compiling its code takes 0.2 s of CPU, as
 * much as indexing 7 MB. Idle threads do not keep the process alive.
 */
export class IndexWorkers implements AsyncDisposable {
  readonly #keep: number;
  readonly #entry: URL;
  #idle: Worker[] = [];
  #closed = false;

  constructor(options: IndexWorkersOptions = {}) {
    this.#keep = options.keep ?? 2;
    this.#entry = options.entry ?? new URL("worker.ts", import.meta.url);
  }

  /** A thread that has nothing to do. */
  take(): Worker {
    const worker = this.#idle.pop();
    if (worker === undefined) return new Worker(this.#entry);
    quieten(worker);
    worker.ref();
    return worker;
  }

  /** Takes back a thread that has finished what it was asked. */
  async give(worker: Worker): Promise<void> {
    quieten(worker);
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

  /** Ends idle threads, and others when they are given back. */
  async close(): Promise<void> {
    this.#closed = true;
    const idle = this.#idle;
    this.#idle = [];
    await Promise.all(idle.map((worker) => worker.terminate()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Takes our listeners off. Not `removeAllListeners()`: Node keeps some of its own there, and messages would stop. */
function quieten(worker: Worker): void {
  for (const event of ["message", "error", "exit"]) worker.removeAllListeners(event);
}
