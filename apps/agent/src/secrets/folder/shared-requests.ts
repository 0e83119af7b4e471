/** A request that several callers wait for. It ends when the last of them has given up. */
interface SharedRequest<T> {
  readonly result: Promise<T>;
  readonly end: AbortController;
  callers: number;
}

/** Requests by key. A second caller waits for the request that runs. */
export class SharedRequests<T> {
  readonly #running = new Map<string, SharedRequest<T>>();

  /**
   * @param request its signal fires when no caller waits any more
   * @throws the error of the request; the reason of the caller's own signal
   */
  async get(key: string, signal: AbortSignal, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    const shared = this.#running.get(key) ?? this.#start(key, request);
    shared.callers++;
    const { promise: givenUp, reject } = Promise.withResolvers<never>();
    const giveUp = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return await Promise.race([shared.result, givenUp]);
    } finally {
      signal.removeEventListener("abort", giveUp);
      shared.callers--;
      if (shared.callers === 0) this.#end(key, shared);
    }
  }

  /** Callers from now on start a request of their own. Earlier callers still get the result of the one that runs. */
  detach(matches: (key: string) => boolean): void {
    for (const key of this.#running.keys()) if (matches(key)) this.#running.delete(key);
  }

  #start(key: string, request: (signal: AbortSignal) => Promise<T>): SharedRequest<T> {
    const end = new AbortController();
    const result = request(end.signal);
    // Every caller may have given up before it fails.
    result.catch(() => undefined);
    const shared = { result, end, callers: 0 };
    this.#running.set(key, shared);
    return shared;
  }

  #end(key: string, shared: SharedRequest<T>): void {
    if (this.#running.get(key) === shared) this.#running.delete(key);
    shared.end.abort();
  }
}
