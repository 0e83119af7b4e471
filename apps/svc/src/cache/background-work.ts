import type { Logger } from "@devplat/base";

/** Work that continues after the response to the request that started it. */
export class BackgroundWork {
  readonly #logger: Logger;
  readonly #running = new Set<Promise<void>>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  start(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => this.#logger.error({ err: error }, "storing a response failed"))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
