import type { Steps } from "@devplat/git-protocol";
import { sliceDone } from "../slice-hook.ts";

export { finish, type Steps } from "@devplat/git-protocol";

/** How long work may keep the thread, ms. */
const SLICE_MS = 8;

/** Says when it is time to let others have the thread. */
export class Pause {
  readonly #signal: AbortSignal | undefined;
  #since = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isDue(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  /** @throws the signal's reason */
  async take(): Promise<void> {
    this.#signal?.throwIfAborted();
    sliceDone();
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}

/**
 * Does work to its end, and lets others have the thread every few milliseconds.
 *
 * @param pause shared by several pieces of work, when each of them may be short
 * @returns the result of the work
 */
export async function finishInSlices<Result>(
  steps: Steps<Result>,
  signal?: AbortSignal,
  pause = new Pause(signal),
): Promise<Result> {
  try {
    signal?.throwIfAborted();
    if (pause.isDue) await pause.take();
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      if (pause.isDue) await pause.take();
    }
  } finally {
    steps.return(undefined as Result);
  }
}
