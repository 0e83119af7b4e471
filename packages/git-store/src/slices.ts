import type { Steps } from "@devplat/git-protocol";

export { finish, type Steps } from "@devplat/git-protocol";

let hook: (() => void) | undefined;

/**
 * Sets a function that long work in this thread calls between slices, at least every few milliseconds: indexing a pack,
 * the connectivity check, and computing bitmaps. The function may block. It lets a worker thread yield to other work.
 * Default: no function.
 */
export function onSlice(between: (() => void) | undefined): void {
  hook = between;
}

/** Runs the function. Long work calls this between slices. */
export function sliceDone(): void {
  hook?.();
}

/** Maximum time of one slice of work, ms. */
const SLICE_MS = 2;

/** Work of this thread that waits for its next slice. */
const waiting: { readonly of: Pause; readonly resume: () => void }[] = [];
/** The work whose slice was the last to begin after a wait. */
let current: Pause | undefined;

/** Begins one slice in each turn of the event loop, so that many requests delay others no longer than one does. */
function beginNext(): void {
  const next = waiting.shift();
  if (next === undefined) return;
  if (waiting.length > 0) setImmediate(beginNext);
  current = next.of;
  next.resume();
}

/** Tells when a slice of work is over, and waits for the next. Slices of all work in a thread take turns. */
export class Pause {
  readonly #signal: AbortSignal | undefined;
  #since = performance.now();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isDue(): boolean {
    return (waiting.length > 0 && current !== this) || performance.now() - this.#since >= SLICE_MS;
  }

  /** @throws the reason of the signal */
  async take(): Promise<void> {
    this.#signal?.throwIfAborted();
    sliceDone();
    await new Promise<void>((resume) => {
      waiting.push({ of: this, resume });
      if (waiting.length === 1) setImmediate(beginNext);
    });
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
