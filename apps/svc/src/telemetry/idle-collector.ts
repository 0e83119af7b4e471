import { performance, type EventLoopUtilization } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Clock } from "@devplat/base";

/** Milliseconds between two looks at the memory. */
const INTERVAL_MS = 5000;
/** Bytes of new objects and buffers that are worth a collection: it takes about 1 ms for each MB that is in use. */
const WORTHWHILE_BYTES = 32 * 1024 * 1024;
/** Share of the interval that the thread may have worked for it to count as idle. */
const IDLE_UTILIZATION = 0.1;
/** The same where nothing waits for the thread: then less is worth a collection. */
const UNUSED_UTILIZATION = 0.01;
const WORTHWHILE_UNUSED_BYTES = 8 * 1024 * 1024;

/** Measurements and the collection. Default: those of this process. */
export interface CollectorParts {
  readonly usedBytes: () => number;
  readonly collect: () => void;
  readonly utilization: (since?: EventLoopUtilization) => EventLoopUtilization;
}

/**
 * Collects garbage when the thread is idle. V8 collects when something is allocated: what a burst of large requests left
 * stays in memory for as long as no further request comes.
 */
export class IdleCollector {
  readonly #clock: Clock;
  readonly #parts: CollectorParts;
  #collectedBytes = 0;

  constructor(clock: Clock, parts: CollectorParts = ofThisProcess()) {
    this.#clock = clock;
    this.#parts = parts;
  }

  /** Looks until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    let last = this.#parts.utilization();
    while (!signal.aborted) {
      await this.#clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      const now = this.#parts.utilization();
      const { utilization } = this.#parts.utilization(last);
      last = now;
      if (utilization < UNUSED_UTILIZATION) this.#collect(WORTHWHILE_UNUSED_BYTES);
      else if (utilization < IDLE_UTILIZATION) this.#collect(WORTHWHILE_BYTES);
    }
  }

  #collect(worthwhile: number): void {
    const used = this.#parts.usedBytes();
    // V8 has collected since: from here on counts what is new.
    if (used < this.#collectedBytes) this.#collectedBytes = used;
    if (used - this.#collectedBytes < worthwhile) return;
    this.#parts.collect();
    this.#collectedBytes = this.#parts.usedBytes();
  }
}

function ofThisProcess(): CollectorParts {
  // The flag alone makes no function of this context: only a context that is made after it has one.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  return {
    usedBytes: () => {
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    },
    collect,
    utilization: (since) => performance.eventLoopUtilization(since),
  };
}
