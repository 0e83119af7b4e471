import type { Clock } from "@devplat/base";

/** Maximum wait for an idle repository, in milliseconds: one that is always busy must be repacked, too. */
const MAX_WAIT_MS = 60_000;

export interface IdleDetectorOptions {
  readonly clock: Clock;
  /** Milliseconds without a request after which a repository is idle. 0: always. */
  readonly idleMs: number;
  /** Default {@link MAX_WAIT_MS}. */
  readonly maxWaitMs?: number;
}

/**
 * Says when a repository is idle, so that it can be repacked. Fills do not wait, because the next request needs them.
 */
export class IdleDetector {
  readonly #clock: Clock;
  readonly #idleMs: number;
  readonly #maxWaitMs: number;
  readonly #lastAt = new Map<string, number>();

  constructor({ clock, idleMs, maxWaitMs = MAX_WAIT_MS }: IdleDetectorOptions) {
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
