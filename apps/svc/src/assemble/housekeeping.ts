import { randomUUID } from "node:crypto";
import type { Clock, Logger } from "@devplat/base";
import type { Store } from "../storage/store.ts";

/** Milliseconds between two runs. */
const INTERVAL_MS = 60 * 60 * 1000;
/** Milliseconds that ended tokens are kept, so that a leak that is found late can still be told from a stranger's. */
const KEEP_ENDED_MS = 30 * 24 * 60 * 60 * 1000;
/** Milliseconds that records of shared fetches are kept, for people who look into the database. */
const KEEP_FETCHES_MS = 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;
/** Only one of several instances on one database does it at a time. */
const LEASE = "housekeeping";
/** Milliseconds after which an instance that died in the middle is not waited for any more. */
const LEASE_MS = 10 * 60 * 1000;

export interface HousekeepingOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Days that audit records are kept; 0: for ever. */
  readonly auditDays: number;
}

/** Removes what is over: sessions, tokens that ended long ago, one-time entries, old audit records. */
export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #holder = randomUUID();

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.clean();
      await this.#options.clock.sleep(INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  async clean(): Promise<void> {
    const { store, clock, logger, auditDays } = this.#options;
    const now = clock.now();
    try {
      const lease = await store.leases.acquire(LEASE, this.#holder, LEASE_MS);
      if (lease === undefined) return;
      const sessions = await store.sessions.deleteExpired(now);
      const tokens = await store.tokens.deleteEnded(now - KEEP_ENDED_MS);
      const entries = await store.oneTime.deleteExpired(now);
      const audit = auditDays === 0 ? 0 : await store.audit.deleteBefore(now - auditDays * DAY_MS);
      await store.leases.deleteEnded(DAY_MS);
      await store.sharedFetches.deleteEnded(KEEP_FETCHES_MS);
      await store.leases.release(lease);
      if (sessions + tokens + entries + audit > 0) {
        logger.info({ sessions, tokens, entries, audit_records: audit }, "removed what is over");
      }
    } catch (error) {
      logger.warn({ err: error }, "what is over could not be removed");
    }
  }
}
