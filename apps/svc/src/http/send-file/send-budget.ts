/** Bytes that may be sent without a pause: 3 to 4 ms. */
const CAPACITY_BYTES = 32 * 1024 * 1024;
/** Bytes for each millisecond after that: about a tenth of the thread's time. */
const BYTES_PER_MS = 1024 * 1024;

/** Limits how much the event loop's thread sends itself, so that many clients together do not delay other requests. */
export class SendBudget {
  #free = CAPACITY_BYTES;
  #at = performance.now();

  /** @returns false: nothing was taken, because less is free */
  take(bytes: number): boolean {
    const now = performance.now();
    this.#free = Math.min(CAPACITY_BYTES, this.#free + (now - this.#at) * BYTES_PER_MS);
    this.#at = now;
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }
}
