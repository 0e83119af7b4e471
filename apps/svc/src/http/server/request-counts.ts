import { KeyedSemaphore } from "@devplat/base/semaphore";
import { addressKey } from "@devplat/config/address-key";
import type { RequestContext } from "../request/request-context.ts";

/** Counts the requests of each client that are being answered, so that one cannot take everything. */
export class RequestCounts {
  readonly #places: KeyedSemaphore<string>;

  /** @param max concurrent requests of one address; undefined: no limit */
  constructor(max = Infinity) {
    this.#places = new KeyedSemaphore(max);
  }

  /** @returns false: as many as allowed are running. Otherwise it counts until its answer is closed. */
  begin({ remoteAddress, response }: RequestContext): boolean {
    // Without an address (a Unix socket) the clients cannot be told apart.
    if (remoteAddress === "") return true;
    const release = this.#places.tryAcquire(addressKey(remoteAddress));
    if (release === undefined) return false;
    response.once("close", release);
    return true;
  }
}
