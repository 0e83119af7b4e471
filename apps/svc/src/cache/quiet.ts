import type { Clock } from "@devplat/base";

/** Milliseconds without a fetch after which a repository counts as quiet. */
export const QUIET_MS = 10_000;
/**
 * Milliseconds that work behind the scenes waits for quiet at most: a repository that is never quiet must be stored,
 * too, or each of its requests costs the code host.
 */
const MAX_WAIT_MS = 60_000;

export interface QuietOptions {
  readonly clock: Clock;
  /** Default {@link QUIET_MS}. 0: never waits. */
  readonly quietMs?: number | undefined;
  /** Default {@link MAX_WAIT_MS}. */
  readonly maxWaitMs?: number | undefined;
}

/**
 * Lets work behind the scenes begin when a repository is not being served: who has just been given a pack unpacks it
 * now, often on this very machine, and whoever comes next wants an answer, not a share of the CPU.
 */
export class Quiet {
  readonly #clock: Clock;
  readonly #quietMs: number;
  readonly #maxWaitMs: number;
  readonly #lastAt = new Map<string, number>();

  constructor({ clock, quietMs = QUIET_MS, maxWaitMs = MAX_WAIT_MS }: QuietOptions) {
    this.#clock = clock;
    this.#quietMs = quietMs;
    this.#maxWaitMs = Math.max(maxWaitMs, quietMs);
  }

  /** A request for the repository came, or was answered. */
  disturb(key: string): void {
    this.#lastAt.set(key, this.#clock.monotonic());
  }

  /** Waits until the repository is quiet, or has been waited for long enough. @throws AbortError */
  async wait(key: string, signal: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + this.#maxWaitMs;
    for (;;) {
      const now = this.#clock.monotonic();
      const left = Math.min((this.#lastAt.get(key) ?? now - this.#quietMs) + this.#quietMs, deadline) - now;
      if (left <= 0) break;
      await this.#clock.sleep(left, signal);
    }
    signal.throwIfAborted();
    if (this.#clock.monotonic() - (this.#lastAt.get(key) ?? 0) >= this.#quietMs) this.#lastAt.delete(key);
  }
}
