/** Milliseconds that a speed is measured over. */
const WINDOW_MS = 10_000;
/** Milliseconds before a speed is known: a shorter time would give absurd speeds. */
export const MIN_AGE_MS = 1000;

/** Measures how many bytes the works of a queue move, while any of them runs. */
export class Meter {
  /** Bytes by the second in which they moved. */
  readonly #seconds = new Map<number, number>();
  /** When works began to run; undefined: none runs. */
  #since: number | undefined;

  /** @param now in milliseconds, as in all calls */
  begin(now: number): void {
    this.#since ??= now;
  }

  /** No work runs any more: the time from now on does not count. */
  end(): void {
    this.#since = undefined;
    this.#seconds.clear();
  }

  moved(bytes: number, now: number): void {
    const second = Math.floor(now / 1000);
    this.#seconds.set(second, (this.#seconds.get(second) ?? 0) + bytes);
  }

  /** Bytes in a millisecond; undefined: not known, because no work has moved a byte, or for too short a time. */
  perMs(now: number): number | undefined {
    const age = now - (this.#since ?? now);
    if (age < MIN_AGE_MS || this.#seconds.size === 0) return undefined;
    let bytes = 0;
    for (const [second, each] of this.#seconds) {
      if (second * 1000 >= now - WINDOW_MS - 1000) bytes += each;
      // An old entry shows that bytes have moved at all. One is enough.
      else if (this.#seconds.size > 1) this.#seconds.delete(second);
    }
    return bytes / Math.min(WINDOW_MS, age);
  }
}
