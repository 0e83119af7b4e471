import { sliceDone } from "../slice-hook.ts";

/** Work that pauses now and then, so that its driver can let others have the thread. */
export type Steps = Generator<void, void, undefined>;

/** Does work to its end in one go. */
export function finish(steps: Steps): void {
  while (steps.next().done !== true);
}

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
 */
export async function finishInSlices(
  steps: Steps,
  signal?: AbortSignal,
  pause = new Pause(signal),
): Promise<void> {
  try {
    signal?.throwIfAborted();
    if (pause.isDue) await pause.take();
    while (steps.next().done !== true) if (pause.isDue) await pause.take();
  } finally {
    steps.return();
  }
}
