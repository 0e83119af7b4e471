import { KeyedSemaphore, type Release } from "@devplat/base/semaphore";
import { addressKey } from "@devplat/config/address-key";

/** The part of all places that one client may have. */
const CLIENT_SHARE = 3 / 4;

/**
 * Shares out what there are few of, such as connections to the code host, which a client holds for as long as it takes to
 * read an answer: one client gets three quarters, and waits in turn for more, so that some are left for all others.
 */
export class ClientPlaces {
  readonly #places: KeyedSemaphore<string>;

  constructor(places: number) {
    this.#places = new KeyedSemaphore(Math.max(1, Math.floor(places * CLIENT_SHARE)));
  }

  /**
   * Takes a place, or waits for one of the client's own.
   *
   * @param address of the client; empty: not known, as behind a Unix socket, where clients cannot be told apart
   * @param signal ends the waiting
   * @returns gives the place back
   * @throws the signal's reason
   */
  async take(address: string, signal: AbortSignal): Promise<Release> {
    if (address === "") return () => undefined;
    return this.#places.acquire(addressKey(address), signal);
  }
}
