let hook: (() => void) | undefined;

/**
 * Sets a function that long work in this thread calls between two slices, every few milliseconds or less: indexing a
 * pack, checking that it is connected, making bitmaps. The function may block. It is meant for worker threads that
 * give way to other work; without one, slices follow each other.
 */
export function onSlice(between: (() => void) | undefined): void {
  hook = between;
}

/** Long work calls this between two slices. */
export function sliceDone(): void {
  hook?.();
}
