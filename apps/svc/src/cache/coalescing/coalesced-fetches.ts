import type { ObjectFormat } from "@devplat/git-protocol";
import type { ClientWait } from "../admission/client-wait.ts";
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
  /** Waits of the clients that lead fetches. */
  readonly #waits = new WeakMap<CoalescedFetch, ClientWait>();

  /** @param shared see sharingKey */
  find(shared: string): CoalescedFetch | undefined {
    return this.#open.get(shared);
  }

  /**
   * @param shared see sharingKey; undefined: no other request may join
   * @param client its signal fires when it leaves
   */
  open(
    shared: string | undefined,
    format: ObjectFormat,
    { gone, wait }: { readonly gone: AbortSignal; readonly wait: ClientWait },
  ): LedFetch {
    const check = new ResponseCheck(format);
    const fetch = new CoalescedFetch(check);
    const reader = fetch.join();
    this.#waits.set(fetch, wait);
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

  /** Wait of the client that leads a fetch. */
  waitOf(fetch: CoalescedFetch): ClientWait | undefined {
    return this.#waits.get(fetch);
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
