/** Releases a place. A second call does nothing. */
export type Release = () => void;

/** A counting semaphore. Callers get its places in the order of their calls. */
export class Semaphore {
  readonly #max: number;
  readonly #first = new Set<() => void>();
  readonly #next = new Set<() => void>();
  #taken = 0;

  /** @param max number of places; with Infinity no caller waits */
  constructor(max: number) {
    this.#max = max;
  }

  /** Number of places in use. */
  get taken(): number {
    return this.#taken;
  }

  /** Takes a place if one is free. @returns the function that releases it, or undefined if no place is free */
  tryAcquire(): Release | undefined {
    if (this.#taken >= this.#max) return undefined;
    this.#taken++;
    return this.#release();
  }

  /**
   * Takes a place. Waits until one is free.
   *
   * @param signal ends the waiting
   * @param first whether to wait before all callers that did not set this
   * @returns the function that releases the place
   * @throws the reason of the signal
   */
  async acquire(signal?: AbortSignal, first = false): Promise<Release> {
    signal?.throwIfAborted();
    const release = this.tryAcquire();
    if (release !== undefined) return release;
    const queue = first ? this.#first : this.#next;
    const { promise, resolve, reject } = Promise.withResolvers<Release>();
    const start = (): void => {
      queue.delete(start);
      signal?.removeEventListener("abort", giveUp);
      resolve(this.#release());
    };
    const giveUp = (): void => {
      queue.delete(start);
      reject(signal?.reason as Error);
    };
    queue.add(start);
    signal?.addEventListener("abort", giveUp, { once: true });
    return await promise;
  }

  #release(): Release {
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const [next] = this.#first.size > 0 ? this.#first : this.#next;
      // The next caller gets the place directly, so that no other caller takes it first.
      if (next === undefined) this.#taken--;
      else next();
    };
  }
}

/** A {@link Semaphore} for each key, such as a client's address. Keys without a place in use take no memory. */
export class KeyedSemaphore<Key> {
  readonly #max: number;
  readonly #semaphores = new Map<Key, Semaphore>();

  /** @param max number of places for each key; with Infinity no caller waits */
  constructor(max: number) {
    this.#max = max;
  }

  /** As {@link Semaphore.tryAcquire}, for this key. */
  tryAcquire(key: Key): Release | undefined {
    const semaphore = this.#of(key);
    const release = semaphore.tryAcquire();
    return release && this.#release(key, semaphore, release);
  }

  /** As {@link Semaphore.acquire}, for this key. */
  async acquire(key: Key, signal?: AbortSignal): Promise<Release> {
    signal?.throwIfAborted();
    const semaphore = this.#of(key);
    return this.#release(key, semaphore, await semaphore.acquire(signal));
  }

  #of(key: Key): Semaphore {
    let semaphore = this.#semaphores.get(key);
    if (semaphore === undefined) {
      semaphore = new Semaphore(this.#max);
      this.#semaphores.set(key, semaphore);
    }
    return semaphore;
  }

  #release(key: Key, semaphore: Semaphore, release: Release): Release {
    return () => {
      release();
      if (semaphore.taken === 0 && this.#semaphores.get(key) === semaphore) this.#semaphores.delete(key);
    };
  }
}
