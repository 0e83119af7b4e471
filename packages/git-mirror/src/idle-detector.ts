import type { Clock } from "@devplat/base";

/** Milliseconds without a fetch after which a repository counts as idle. */
export const IDLE_MS = 10_000;
/** Maximum wait for an idle repository, in milliseconds: one that is always busy must be repacked, too. */
const MAX_WAIT_MS = 60_000;

export interface IdleDetectorOptions {
  readonly clock: Clock;
  /** `cache.repack_idle_seconds`, in milliseconds. Default {@link IDLE_MS}. 0: never waits. */
  readonly idleMs?: number | undefined;
  /** Default {@link MAX_WAIT_MS}. */
  readonly maxWaitMs?: number | undefined;
}

/**
 * Lets the repacking of a repository begin when nobody fetches from it. Filling and warming do not wait: the next
 * request has use for what they bring.
 */
export class IdleDetector {
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #maxWaitMs: number;
  readonly #lastAt = new Map<string, number>();

  constructor({ clock, idleMs = IDLE_MS, maxWaitMs = MAX_WAIT_MS }: IdleDetectorOptions) {
    this.#clock = clock;
    this.#idleMs = idleMs;
    this.#maxWaitMs = Math.max(maxWaitMs, idleMs);
  }

  /** A request for the repository arrived, or was answered. */
  touch(key: string): void {
    this.#lastAt.set(key, this.#clock.monotonic());
  }

  /** Waits until the repository is idle, or the maximum wait is over. @throws AbortError */
  async wait(key: string, signal: AbortSignal): Promise<void> {
    const deadline = this.#clock.monotonic() + this.#maxWaitMs;
    for (;;) {
      const now = this.#clock.monotonic();
      const left = Math.min((this.#lastAt.get(key) ?? now - this.#idleMs) + this.#idleMs, deadline) - now;
      if (left <= 0) break;
      await this.#clock.sleep(left, signal);
    }
    signal.throwIfAborted();
    if (this.#clock.monotonic() - (this.#lastAt.get(key) ?? 0) >= this.#idleMs) this.#lastAt.delete(key);
  }
}
