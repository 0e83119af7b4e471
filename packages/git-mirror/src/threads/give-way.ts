import { openSync, readSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { onSlice } from "@devplat/git-store";

/** Milliseconds of work between two looks at how busy the CPU is. Longer than the kernel lets one of two threads run. */
const LOOK_MS = 8;
/** Share of the time that a thread waited for a CPU, from which on somebody else needs that CPU. */
const BUSY_SHARE = 0.1;
/** After a look that found the CPU busy a thread rests for so many times its last slice: it uses a twentieth of a CPU. */
const REST_FACTOR = 19;
/** Milliseconds of one rest, at least and at most. */
const MIN_REST_MS = 150;
const MAX_SINGLE_REST_MS = 1000;
/**
 * Milliseconds of rest in one piece of work. On a machine that is always busy, work behind requests then goes on at the
 * thread's low priority: a store that is never filled costs the code host a fetch for each request.
 */
const MAX_REST_MS = 20_000;
/** Milliseconds without a slice after which the thread is at another piece of work. */
const NEXT_WORK_MS = 1000;

/** Tells threads whether somebody waits for what they do. Shared memory; the counter is in its first field. */
export class Urgency {
  readonly memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #waiting = new Int32Array(this.memory);

  /** Threads do not give way from now on. */
  always(): void {
    Atomics.add(this.#waiting, 0, 1);
    Atomics.notify(this.#waiting, 0);
  }

  /** Threads do not give way until the work has settled. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.always();
    try {
      return await work;
    } finally {
      Atomics.sub(this.#waiting, 0, 1);
    }
  }
}

/** What {@link restsWhileBusy} looks at; all times in milliseconds. */
export interface Surroundings {
  readonly now: () => number;
  /** How long this thread was ready to run and had no CPU, in all. */
  readonly runDelay: () => number;
  /** Whether somebody waits for the work. */
  readonly isUrgent: () => boolean;
  /** Blocks the thread; ends early when somebody begins to wait. */
  readonly rest: (ms: number) => void;
}

/** A function to be called between slices of work: it rests while others need the CPU. */
export function restsWhileBusy({ now, runDelay, isUrgent, rest }: Surroundings): () => void {
  let lookedAt = now();
  let delayed = runDelay();
  let rested = 0;
  return () => {
    const passed = now() - lookedAt;
    if (passed < LOOK_MS) return;
    if (passed > NEXT_WORK_MS) rested = 0;
    const since = runDelay() - delayed;
    if (since > passed * BUSY_SHARE && rested < MAX_REST_MS && !isUrgent()) {
      const ms = Math.min(Math.max(passed * REST_FACTOR, MIN_REST_MS), MAX_SINGLE_REST_MS);
      rest(ms);
      rested += ms;
    }
    lookedAt = now();
    delayed = runDelay();
  };
}

/**
 * Lets long work in this thread rest while other threads or programs wait for the CPU, unless a request waits for the
 * work. A low priority is not enough: the kernel compares it within one session or control group only
 * (`sched_autogroup`), and the client of a clone on the same machine is in another one. Linux only; elsewhere, and
 * without the memory of an {@link Urgency} as `workerData`, it does nothing.
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
  // Kernels without these figures show zeros: then nothing seems busy.
  return Number.isFinite(read()) ? read : undefined;
}
