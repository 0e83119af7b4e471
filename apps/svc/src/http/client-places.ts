import { addressKey } from "./address-key.ts";

/** The part of all places that one client may have. */
const CLIENT_SHARE = 3 / 4;

/** A place that was taken. `leave` gives it back, and may be called again. */
export interface ClientPlace {
  leave(): void;
}

/**
 * Shares out what there are few of, such as connections to the code host, which a client holds for as long as it takes to
 * read an answer: one client gets three quarters, and waits in turn for more, so that some are left for all others.
 */
export class ClientPlaces {
  readonly #perClient: number;
  readonly #taken = new Map<string, number>();
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(places: number) {
    this.#perClient = Math.max(1, Math.floor(places * CLIENT_SHARE));
  }

  /**
   * Takes a place, or waits for one of the client's own.
   *
   * @param address of the client; empty: not known, as behind a Unix socket, where clients cannot be told apart
   * @param signal ends the waiting
   * @throws the signal's reason
   */
  async take(address: string, signal: AbortSignal): Promise<ClientPlace> {
    if (address === "") return { leave: () => undefined };
    const client = addressKey(address);
    const taken = this.#taken.get(client) ?? 0;
    if (taken < this.#perClient) this.#taken.set(client, taken + 1);
    else await this.#turn(client, signal);
    let left = false;
    return {
      leave: () => {
        if (!left) this.#pass(client);
        left = true;
      },
    };
  }

  async #turn(client: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const queue = this.#waiting.get(client) ?? new Set();
    this.#waiting.set(client, queue);
    const give = (): void => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = (): void => {
      queue.delete(give);
      if (queue.size === 0) this.#waiting.delete(client);
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", giveUp, { once: true });
    queue.add(give);
    await promise;
  }

  /** A place goes to the next who waits, or becomes free. */
  #pass(client: string): void {
    const queue = this.#waiting.get(client);
    const [next] = queue ?? [];
    if (queue !== undefined && next !== undefined) {
      queue.delete(next);
      if (queue.size === 0) this.#waiting.delete(client);
      next();
      return;
    }
    const left = (this.#taken.get(client) ?? 1) - 1;
    if (left === 0) this.#taken.delete(client);
    else this.#taken.set(client, left);
  }
}
