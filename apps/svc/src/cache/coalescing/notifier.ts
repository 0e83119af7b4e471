/** Milliseconds in which notifications are gathered. */
const GATHER_MS = 5;

/**
 * Wakes the waiting readers once per turn of the event loop, and less often on request. Bytes that arrive until then are
 * sent, and written to the file, with one call.
 */
export class Notifier {
  readonly #gathers: () => boolean;
  #wake = Promise.withResolvers<void>();
  #waking = false;

  /** @param gathers whether notifications of a few milliseconds are gathered now */
  constructor(gathers: () => boolean) {
    this.#gathers = gathers;
  }

  /** Waits for the next notification. */
  async wait(): Promise<void> {
    await this.#wake.promise;
  }

  notify(): void {
    if (this.#waking) return;
    this.#waking = true;
    const wake = (): void => {
      this.#waking = false;
      const { resolve } = this.#wake;
      this.#wake = Promise.withResolvers<void>();
      resolve();
    };
    if (this.#gathers()) setTimeout(wake, GATHER_MS);
    else setImmediate(wake);
  }
}
