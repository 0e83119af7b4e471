import type { Clock, Logger } from "@devplat/base";
import type { Store } from "./storage/store.ts";

/** Milliseconds between two runs. */
const INTERVAL_MS = 60 * 60 * 1000;
/** Milliseconds that ended tokens are kept, so that a leak that is found late can still be told from a stranger's. */
const KEEP_ENDED_MS = 30 * 24 * 60 * 60 * 1000;

/** Removes sessions that are over and tokens that ended long ago. */
export class Housekeeping {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #logger: Logger;

  constructor(store: Store, clock: Clock, logger: Logger) {
    this.#store = store;
    this.#clock = clock;
    this.#logger = logger;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.clean();
      await this.#clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  async clean(): Promise<void> {
    const now = this.#clock.now();
    try {
      const sessions = await this.#store.sessions.deleteExpired(now);
      const tokens = await this.#store.tokens.deleteEnded(now - KEEP_ENDED_MS);
      if (sessions + tokens > 0) this.#logger.info({ sessions, tokens }, "removed what is over");
    } catch (error) {
      this.#logger.warn({ err: error }, "sessions and tokens that are over could not be removed");
    }
  }
}
