import type { ObjectFormat } from "@devplat/git-protocol";
import { ResponseCheck } from "../responses/response-check.ts";
import { CoalescedFetch, type FetchReader } from "./coalesced-fetch.ts";

/** A fetch that this request leads, with the place of its own client in it. */
export interface LedFetch {
  readonly fetch: CoalescedFetch;
  readonly check: ResponseCheck;
  readonly reader: FetchReader;
  /** No other request finds or joins it any more. Those who have joined go on. Closing twice does nothing. */
  close(): void;
}

/** The fetches under way that other requests may join. */
export class CoalescedFetches {
  readonly #open = new Map<string, CoalescedFetch>();
  /** Fetches that got no turn at the code host. */
  readonly #turnedAway = new WeakSet<CoalescedFetch>();

  /** @param place names the request, the repository's data and what its client may see */
  find(place: string): CoalescedFetch | undefined {
    return this.#open.get(place);
  }

  /**
   * @param place undefined: no other request may join
   * @param gone fires when the client leaves
   */
  open(place: string | undefined, format: ObjectFormat, gone: AbortSignal): LedFetch {
    const check = new ResponseCheck(format);
    const fetch = new CoalescedFetch(check);
    const reader = fetch.join();
    gone.addEventListener("abort", () => reader.leave(), { once: true });
    if (place === undefined) fetch.abandon();
    else this.#open.set(place, fetch);
    const close = (): void => {
      fetch.abandon();
      if (place !== undefined && this.#open.get(place) === fetch) this.#open.delete(place);
      fetch.close();
    };
    return { fetch, check, reader, close };
  }

  /** It got no turn in time: nor do those who waited for it, if their time is over. */
  turnAway(fetch: CoalescedFetch): void {
    this.#turnedAway.add(fetch);
  }

  wasTurnedAway(fetch: CoalescedFetch): boolean {
    return this.#turnedAway.has(fetch);
  }
}
