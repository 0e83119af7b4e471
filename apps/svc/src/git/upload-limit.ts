import { KeyedSemaphore, type Release } from "@devplat/base/semaphore";
import { addressKey } from "@devplat/config/address-key";
import { GitError } from "../upstream/errors.ts";
import { MAX_CONNECTIONS } from "../upstream/upstream.ts";

/** Maximum number of concurrent bodies of one client address: half of the connections for bodies. */
export const MAX_UPLOADS_PER_CLIENT = MAX_CONNECTIONS / 2;

/** Counts, per client address, the bodies that are on their way through, so that one client cannot take all places. */
export class UploadLimit {
  readonly #places = new KeyedSemaphore<string>(MAX_UPLOADS_PER_CLIENT);

  /**
   * @returns ends the body's place
   * @throws GitError `busy`
   */
  begin(address: string): Release {
    const release = this.#places.tryAcquire(addressKey(address));
    if (release !== undefined) return release;
    throw new GitError("busy", 429, "too many requests of this address are sending their bodies; try again", {
      headers: { "Retry-After": "5" },
    });
  }
}
