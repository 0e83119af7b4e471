import { Serializer } from "@devplat/base/serializer";
import type { Consolidated } from "./storage/repack.ts";
import type { IdleDetector } from "./idle-detector.ts";

/** A store as maintenance sees it. */
export interface Maintained {
  consolidate(): Promise<Consolidated>;
}

export interface StoreMaintenanceOptions {
  readonly idle: IdleDetector;
  /** Told of a consolidation that failed. */
  readonly failed: (key: string, error: unknown) => Promise<void>;
  /** Nothing is left to do: threads may end. */
  readonly done: () => Promise<void>;
}

/**
 * Consolidates stores after they were filled: one at a time over all repositories, each when it is idle. Never in the
 * way of a request; a store that waits for long only has some packs more.
 */
export class StoreMaintenance {
  readonly #options: StoreMaintenanceOptions;
  readonly #ended = new AbortController();
  /** Repositories that wait or are at work. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #turns = new Serializer();

  constructor(options: StoreMaintenanceOptions) {
    this.#options = options;
  }

  /** Something was added to the store. */
  consider(key: string, store: Maintained): void {
    if (this.#running.has(key) || this.#ended.signal.aborted) return;
    this.#running.set(key, this.#run(key, store));
  }

  /** Waits for what is under way or was promised. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Nothing begins any more; what waits for an idle repository gives up. */
  stop(): void {
    this.#ended.abort(new Error("the service is stopping"));
  }

  async #run(key: string, store: Maintained): Promise<void> {
    await this.#maintain(key, store);
    this.#running.delete(key);
    if (this.#running.size === 0) await this.#options.done();
  }

  async #maintain(key: string, store: Maintained): Promise<void> {
    const { signal } = this.#ended;
    try {
      await this.#options.idle.wait(key, signal);
    } catch {
      return;
    }
    await this.#turns.run(async () => {
      if (signal.aborted) return;
      try {
        await store.consolidate();
      } catch (error) {
        if (!signal.aborted) await this.#options.failed(key, error);
      }
    });
  }
}
