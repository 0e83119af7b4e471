import type { Clock, Logger } from "@devplat/base";
import type { TokenStore, TokenUse } from "../storage/store.ts";

/** Milliseconds between two writes of the counters: a busy token must not cause a write per request. */
const WRITE_INTERVAL_MS = 2000;

/** Counts the uses of tokens in memory and writes the sums now and then; the last ones when stopped. */
export class TokenUses {
  readonly #tokens: TokenStore;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #pending = new Map<string, TokenUse>();

  constructor(tokens: TokenStore, clock: Clock, logger: Logger) {
    this.#tokens = tokens;
    this.#clock = clock;
    this.#logger = logger;
  }

  count(id: string, remoteAddress: string): void {
    const uses = (this.#pending.get(id)?.uses ?? 0) + 1;
    this.#pending.set(id, { id, uses, lastUsedAt: this.#clock.now(), lastIp: remoteAddress });
  }

  /** Runs until the signal fires, and then writes the rest. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.sleep(WRITE_INTERVAL_MS, signal).catch(() => undefined);
      await this.flush();
    }
  }

  async flush(): Promise<void> {
    const uses = [...this.#pending.values()];
    this.#pending = new Map();
    try {
      await this.#tokens.recordUses(uses);
    } catch (error) {
      // Lost figures are better than memory that grows while the database is away.
      this.#logger.warn({ err: error, tokens: uses.length }, "uses of tokens were not recorded");
    }
  }
}
