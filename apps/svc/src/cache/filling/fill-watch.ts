import type { CachedRepository } from "../cached-repository.ts";

/** A wait that a fill ends. */
export interface WatchedFill {
  /** Fires when the repository's mirror has been filled. */
  readonly signal: AbortSignal;
  /** Must be called when the wait is over. */
  end(): void;
}

/** Tells requests that wait for a turn at the code host that a mirror was filled: it may have what they want. */
export class FillWatch {
  readonly #observers: ((repository: CachedRepository) => void)[] = [];
  readonly #waiting = new Map<string, Set<AbortController>>();

  watch(key: string): WatchedFill {
    const controller = new AbortController();
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(controller));
    return {
      signal: controller.signal,
      end: () => {
        waiting.delete(controller);
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
      },
    };
  }

  /** Told of fills that are over. */
  observe(filled: (repository: CachedRepository) => void): void {
    this.#observers.push(filled);
  }

  /** Called when a fill began. @returns resolves when it has ended and the waits are notified */
  async begun(repository: CachedRepository, work: Promise<void>): Promise<void> {
    await work;
    this.#done(repository.id.key);
    for (const filled of this.#observers) filled(repository);
  }

  #done(key: string): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    for (const controller of waiting ?? []) controller.abort();
  }
}
