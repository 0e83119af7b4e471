import type { ObjectFormat } from "@devplat/git-protocol";
import { ResponseCheck } from "../responses/response-check.ts";
import { CoalescedFetch, type FetchReader } from "./coalesced-fetch.ts";

/** A fetch that this request leads, with the reader of its own client. */
export interface LedFetch {
  readonly fetch: CoalescedFetch;
  readonly check: ResponseCheck;
  readonly reader: FetchReader;
  /** Ends joining. Requests that joined continue. Closing twice does nothing. */
  close(): void;
}

/** The running fetches that other requests may join. */
export class CoalescedFetches {
  readonly #open = new Map<string, CoalescedFetch>();
  /** Fetches that got no turn at the code host. */
  readonly #turnedAway = new WeakSet<CoalescedFetch>();

  /** @param shared see sharingKey */
  find(shared: string): CoalescedFetch | undefined {
    return this.#open.get(shared);
  }

  /**
   * @param shared see sharingKey; undefined: no other request may join
   * @param gone fires when the client leaves
   */
  open(shared: string | undefined, format: ObjectFormat, gone: AbortSignal): LedFetch {
    const check = new ResponseCheck(format);
    const fetch = new CoalescedFetch(check);
    const reader = fetch.join();
    gone.addEventListener("abort", () => reader.leave(), { once: true });
    if (shared === undefined) fetch.abandon();
    else this.#open.set(shared, fetch);
    const close = (): void => {
      fetch.abandon();
      if (shared !== undefined && this.#open.get(shared) === fetch) this.#open.delete(shared);
      fetch.close();
    };
    return { fetch, check, reader, close };
  }

  /**
   * Marks a fetch that got no turn at the code host in time. Requests that waited for it give up too, when their own
   * deadline is over.
   */
  turnAway(fetch: CoalescedFetch): void {
    this.#turnedAway.add(fetch);
  }

  wasTurnedAway(fetch: CoalescedFetch): boolean {
    return this.#turnedAway.has(fetch);
  }
}
