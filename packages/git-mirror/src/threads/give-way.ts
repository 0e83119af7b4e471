import { openSync, readSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { onSlice } from "@devplat/git-store";

/** Milliseconds of work between two checks of the CPU. Longer than the kernel lets one of two threads run. */
const CHECK_MS = 8;
/** Share of the time that a thread waited for a CPU. Above it the CPU is busy. */
const BUSY_SHARE = 0.1;
/** A thread on a busy CPU rests for this many times its last slice. It then uses a twentieth of a CPU. */
const REST_FACTOR = 19;
/** Minimum and maximum milliseconds of one rest. */
const MIN_REST_MS = 150;
const MAX_SINGLE_REST_MS = 1000;
/**
 * Maximum milliseconds of rest in one job. On a machine that is always busy, the job then continues at the low priority
 * of the thread: a mirror that is never filled costs the upstream a fetch for each request.
 */
const MAX_REST_MS = 20_000;
/** Milliseconds without a slice after which another job has begun. */
const NEXT_WORK_MS = 1000;

/** Tells threads whether a request waits for their work. Uses shared memory; the counter is in its first field. */
export class Urgency {
  readonly memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #waiting = new Int32Array(this.memory);

  /** Threads do not rest any more. */
  always(): void {
    Atomics.add(this.#waiting, 0, 1);
    Atomics.notify(this.#waiting, 0);
  }

  /** Threads do not rest until the work has settled. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.always();
    try {
      return await work;
    } finally {
      Atomics.sub(this.#waiting, 0, 1);
    }
  }
}

/** Input of {@link restsWhileBusy}; all times in milliseconds. */
export interface Surroundings {
  readonly now: () => number;
  /** Total time in which this thread was ready to run and had no CPU. */
  readonly runDelay: () => number;
  /** Whether a request waits for the work. */
  readonly isUrgent: () => boolean;
  /** Blocks the thread. Ends early when a request begins to wait. */
  readonly rest: (ms: number) => void;
}

/** Returns a function that the thread calls between slices of work. It rests while other threads need the CPU. */
export function restsWhileBusy({ now, runDelay, isUrgent, rest }: Surroundings): () => void {
  let checkedAt = now();
  let delayed = runDelay();
  let rested = 0;
  return () => {
    const passed = now() - checkedAt;
    if (passed < CHECK_MS) return;
    if (passed > NEXT_WORK_MS) rested = 0;
    const since = runDelay() - delayed;
    if (since > passed * BUSY_SHARE && rested < MAX_REST_MS && !isUrgent()) {
      const ms = Math.min(Math.max(passed * REST_FACTOR, MIN_REST_MS), MAX_SINGLE_REST_MS);
      rest(ms);
      rested += ms;
    }
    checkedAt = now();
    delayed = runDelay();
  };
}

/**
 * Makes long work in this thread rest while other threads or programs wait for the CPU, unless a request waits for the
 * work. A low priority is not enough: the kernel compares priorities only within one session or control group
 * (`sched_autogroup`), and a client on the same machine is in another one. Linux only. On other systems, and without
 * the memory of an {@link Urgency} as `workerData`, it does nothing.
 */
export function giveWayInThread(): void {
  if (!(workerData instanceof SharedArrayBuffer)) return;
  const waiting = new Int32Array(workerData);
  const runDelay = openRunDelay();
  if (runDelay === undefined) return;
  onSlice(
    restsWhileBusy({
      now: () => performance.now(),
      runDelay,
      isUrgent: () => Atomics.load(waiting, 0) > 0,
      rest: (ms) => void Atomics.wait(waiting, 0, 0, ms),
    }),
  );
}

/** Reads the figure of {@link Surroundings.runDelay} from `schedstat` (Linux, Documentation/scheduler/sched-stats.rst). */
function openRunDelay(): (() => number) | undefined {
  const buffer = Buffer.alloc(128);
  let fd: number;
  try {
    fd = openSync("/proc/thread-self/schedstat", "r");
  } catch {
    return undefined;
  }
  const read = (): number => {
    const text = buffer.toString("latin1", 0, readSync(fd, buffer, 0, buffer.length, 0));
    return Number(text.split(" ")[1] ?? 0) / 1e6;
  };
  // Kernels without these figures show zeros. Then the CPU never seems busy.
  return Number.isFinite(read()) ? read : undefined;
}
