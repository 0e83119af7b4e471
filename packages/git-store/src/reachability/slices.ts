import type { Steps } from "@devplat/git-protocol";
import { sliceDone } from "../slice-hook.ts";

export { finish, type Steps } from "@devplat/git-protocol";

/** Maximum time of one slice of work, ms. */
const SLICE_MS = 8;

/** Tells when a slice of work is over. */
export class Pause {
  readonly #signal: AbortSignal | undefined;
  #since = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isDue(): boolean {
    return performance.now() - this.#since >= SLICE_MS;
  }

  /** @throws the reason of the signal */
  async take(): Promise<void> {
    this.#signal?.throwIfAborted();
    sliceDone();
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}

/**
 * Runs work to its end, and yields to the event loop every few milliseconds.
 *
 * @param pause clock that several short pieces of work can share
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
