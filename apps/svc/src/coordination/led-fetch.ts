import type { Clock, Logger } from "@devplat/base";
import type { SharedFetchProgress, SharedFetchStore } from "../storage/coordination-store.ts";

/** Milliseconds between two reports. */
const REPORT_MS = 500;
/** Milliseconds for which others are told that the object is in the bucket, and do not fetch again. */
const KEEP_SHARED_MS = 30_000;

export interface LedFetchParts {
  readonly store: SharedFetchStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly key: string;
  readonly fence: number;
  /** Milliseconds without a report after which the others count this instance as dead. */
  readonly silentMs: number;
}

/** A fetch from the code host that this instance makes for all. Its progress is reported in the background. */
export class LedFetch {
  readonly #parts: LedFetchParts;
  readonly #ended = new AbortController();
  readonly #reporting: Promise<void>;
  #progress: SharedFetchProgress = { state: "fetching", bytes: 0, expectedBytes: undefined };
  #isAwaited = false;
  #onAwaited: () => void = () => undefined;

  constructor(parts: LedFetchParts) {
    this.#parts = parts;
    this.#reporting = this.#report();
  }

  /** Number of the fetch, which tells it from all others. */
  get fence(): number {
    return this.#parts.fence;
  }

  /** Whether another instance waits for it. Then it must be uploaded before other things. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** Calls back once when another instance begins to wait, immediately if one waits already. */
  onAwaited(callback: () => void): void {
    if (this.#isAwaited) callback();
    else this.#onAwaited = callback;
  }

  /** Notes progress of the transfer, at any rate. @param bytes received so far @param expectedBytes undefined: unknown */
  received(bytes: number, expectedBytes?: number): void {
    this.#progress = { ...this.#progress, bytes, expectedBytes };
  }

  /** Notes that the transfer is complete, and its upload begins. */
  uploading(): void {
    this.#progress = { ...this.#progress, state: "uploading" };
  }

  /**
   * Says how it ended. `shared`: the object is in the bucket, and the manifest names it. `private`: it will not be. Others
   * stop waiting. Only the first call counts. Never rejects.
   */
  async end(state: "shared" | "private" | "failed"): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    await this.#reporting;
    const { store, key, fence, logger } = this.#parts;
    try {
      await store.end(key, fence, state, state === "shared" ? KEEP_SHARED_MS : 0);
    } catch (error) {
      // The others find out by its silence.
      logger.warn({ err: error }, "the end of a shared fetch cannot be reported");
    }
  }

  async #report(): Promise<void> {
    const { store, clock, logger, key, fence, silentMs } = this.#parts;
    const ended = this.#ended.signal;
    let isFailing = false;
    for (;;) {
      await clock.sleep(Math.min(REPORT_MS, silentMs / 4), ended).catch(() => undefined);
      if (ended.aborted) return;
      try {
        const seen = await store.progress(key, fence, this.#progress, silentMs);
        isFailing = false;
        // The record ended: this process was paused, and another instance fetches now. This one goes on for its clients.
        if (seen === undefined) return;
        if (seen.isAwaited) this.#awaited();
      } catch (error) {
        if (!isFailing) logger.warn({ err: error }, "the progress of a shared fetch cannot be reported");
        isFailing = true;
      }
    }
  }

  #awaited(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    this.#onAwaited();
  }
}
