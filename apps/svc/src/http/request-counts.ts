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
    const running = this.#running.get(remoteAddress) ?? 0;
    if (running >= this.#max) return false;
    this.#running.set(remoteAddress, running + 1);
    response.once("close", () => {
      const left = (this.#running.get(remoteAddress) ?? 1) - 1;
      if (left === 0) this.#running.delete(remoteAddress);
      else this.#running.set(remoteAddress, left);
    });
    return true;
  }
}
