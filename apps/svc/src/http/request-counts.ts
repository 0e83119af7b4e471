import { addressKey } from "./address-key.ts";
import type { Exchange } from "./exchange.ts";

/** Counts the requests of each client that are being answered, so that one cannot take everything. */
export class RequestCounts {
  readonly #max: number | undefined;
  readonly #running = new Map<string, number>();

  /** @param max at once, of one address; undefined: no bound */
  constructor(max: number | undefined) {
    this.#max = max;
  }

  /** @returns false: as many as allowed are running. Otherwise it counts until its answer is closed. */
  begin({ remoteAddress, response }: Exchange): boolean {
    // Without an address (a Unix socket) the clients cannot be told apart.
    if (this.#max === undefined || remoteAddress === "") return true;
    const client = addressKey(remoteAddress);
    const running = this.#running.get(client) ?? 0;
    if (running >= this.#max) return false;
    this.#running.set(client, running + 1);
    response.once("close", () => {
      const left = (this.#running.get(client) ?? 1) - 1;
      if (left === 0) this.#running.delete(client);
      else this.#running.set(client, left);
    });
    return true;
  }
}
