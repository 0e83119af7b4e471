import type { Clock, Logger } from "@devplat/base";

/** Counts how often a peer got the store token, with the last time. Each time is logged. */
export class TokenHandouts {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #count = 0;
  #lastAt: number | undefined;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  note(): void {
    this.#count += 1;
    this.#lastAt = this.#clock.now();
    this.#logger.info({ by: "peer socket", count: this.#count }, "store token handed out");
  }

  /** Since the daemon started. */
  status(): { readonly token_handouts: number; readonly last_token_handout_at: string | null } {
    const last = this.#lastAt === undefined ? null : new Date(this.#lastAt).toISOString();
    return { token_handouts: this.#count, last_token_handout_at: last };
  }
}
