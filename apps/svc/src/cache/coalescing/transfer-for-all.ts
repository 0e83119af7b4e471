import type { FetchForAll } from "../fetch-sharing.ts";
import type { CoalescedFetch, FetchReader } from "./coalesced-fetch.ts";

/**
 * The transfer of a response for all instances. It goes on when all clients of this instance have left, if another instance
 * waits for it.
 */
export class TransferForAll {
  readonly #fetch: CoalescedFetch;
  readonly #forAll: FetchForAll;
  /** Never reads. Its presence keeps the fetch running. */
  #keeper: FetchReader | undefined;
  #isOver = false;

  constructor(fetch: CoalescedFetch, forAll: FetchForAll) {
    this.#fetch = fetch;
    this.#forAll = forAll;
    forAll.onAwaited(() => {
      if (!this.#isOver && fetch.joinable) this.#keeper = fetch.join();
    });
  }

  /** The same chunks. Their bytes are reported. */
  async *chunks(source: AsyncIterable<Buffer>, expectedBytes: number | undefined): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of source) {
      bytes += chunk.length;
      this.#forAll.received(bytes, expectedBytes);
      // Without a file the slowest reader sets the pace, and there is nothing to share.
      if (this.#fetch.diskError !== undefined) this.#leave();
      yield chunk;
    }
  }

  /** Must be called when the response is recorded. */
  end(isStored: boolean): void {
    this.#leave();
    if (isStored) this.#forAll.complete();
    else this.#forAll.giveUp();
  }

  #leave(): void {
    this.#isOver = true;
    this.#keeper?.leave();
    this.#keeper = undefined;
  }
}
