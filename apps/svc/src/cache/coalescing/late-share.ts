import type { LateArrival } from "../fetch-sharing.ts";

/**
 * Watch for data of another instance while the own request to the code host has no response. The code host that was slow to
 * respond to the first instance may be as slow again.
 */
export class LateShare implements Disposable {
  readonly #over = new AbortController();
  readonly #arrived = new AbortController();
  #fence: number | undefined;

  /** @param arrival undefined: no other instance fetches */
  constructor(arrival: LateArrival | undefined) {
    void arrival?.(this.#over.signal).then((fence) => {
      if (fence === undefined || this.#over.signal.aborted) return;
      this.#fence = fence;
      this.#arrived.abort();
    });
  }

  /** Fence of the other instance's fetch, if its data has arrived. It does not change after {@link end}. */
  get fence(): number | undefined {
    return this.#fence;
  }

  /** Fires when the data has arrived: the own request is not needed any more. */
  get signal(): AbortSignal {
    return this.#arrived.signal;
  }

  /** Ends the watch: the own request is used. */
  end(): void {
    this.#over.abort();
  }

  [Symbol.dispose](): void {
    this.end();
  }
}
