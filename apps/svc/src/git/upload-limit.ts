import { addressKey } from "../http/address-key.ts";
import { GitError } from "./errors.ts";
import { MAX_CONNECTIONS } from "./upstream.ts";

/** Bodies that one client address may be sending to the code host at once: half of the connections for such. */
export const MAX_UPLOADS_PER_CLIENT = MAX_CONNECTIONS / 2;

/** Counts, per client address, the bodies that are on their way through, so that one client cannot take all places. */
export class UploadLimit {
  readonly #running = new Map<string, number>();

  /**
   * @returns what ends the body's place; calling it again does nothing
   * @throws GitError `busy`
   */
  begin(address: string): () => void {
    const client = addressKey(address);
    const count = this.#running.get(client) ?? 0;
    if (count >= MAX_UPLOADS_PER_CLIENT) {
      throw new GitError(
        "busy",
        429,
        "too many requests of this address are sending their bodies; try again",
        {
          headers: { "Retry-After": "5" },
        },
      );
    }
    this.#running.set(client, count + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = (this.#running.get(client) ?? 1) - 1;
      if (left === 0) this.#running.delete(client);
      else this.#running.set(client, left);
    };
  }
}
