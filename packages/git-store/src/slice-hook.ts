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
