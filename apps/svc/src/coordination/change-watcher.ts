import type { Clock, Logger } from "@devplat/base";
import type { ChangeStore, ChangeTopic } from "../storage/coordination-store.ts";

/** Milliseconds between two reads of the counts: two of them fit into the time in which a change must be in effect. */
const POLL_MS = 1000;
/** Milliseconds within which a change of another instance must be in effect (spec/svc-scale.md section 4). */
const CURRENT_MS = 2000;
/** Milliseconds between two comparisons that do not depend on counts: an earlier version of this program does not count. */
const FULL_MS = 10_000;
/** Milliseconds between two reads when many changes are reported. */
const GAP_MS = 100;
/** Milliseconds that the database gets for the counts. */
const RESPONSE_MS = 2000;
/** Milliseconds that a request waits for the database. Then it is served without it. */
const WAIT_MS = 1000;
/** In the order in which changes are applied. */
const TOPICS: readonly ChangeTopic[] = ["repositories", "epochs"];
const NO_RESPONSE = "The database did not respond in time";

export interface ChangeWatcherParts {
  readonly store: ChangeStore;
  /** Brings up to date what this instance keeps of each subject. */
  readonly apply: Readonly<Record<ChangeTopic, () => Promise<void>>>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Learns about changes that other instances made, and applies them. Data that instances keep must be used only while
 * {@link isCurrent}, or after {@link refresh}.
 *
 * While the database does not respond, this instance goes on with what it knows. After its first response all changes are
 * applied before anything is used.
 */
export class ChangeWatcher {
  readonly #parts: ChangeWatcherParts;
  /** Counts whose changes were applied. */
  readonly #applied = new Map<ChangeTopic, number>();
  /** Times of the monotonic clock: start of the last read whose changes were applied, and of the last full comparison. */
  #currentAt = -Infinity;
  #fullAt = -Infinity;
  #reading: Promise<void> | undefined;
  /** Whether a read has its response, and changes are being applied. */
  #isApplying = false;
  /** Whether the last read failed. */
  #isAway = false;
  /** Whether the database has responded to anything since then. */
  #hasResponded = false;
  /** Whether a change was reported that no read has looked for yet. */
  #isReported = false;
  #wake: () => void = () => undefined;

  constructor(parts: ChangeWatcherParts) {
    this.#parts = parts;
  }

  /** Applies everything once. Must be called before the first request. @throws SvcError `database_unavailable` */
  async start(): Promise<void> {
    await this.#read();
  }

  /** Reads and listens until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, clock } = this.#parts;
    const listening = store.listen(() => this.#reported(), signal);
    while (!signal.aborted) {
      await this.#sleep(POLL_MS, signal);
      if (signal.aborted) break;
      await this.#read().catch(() => undefined);
      await clock.sleep(GAP_MS, signal).catch(() => undefined);
    }
    await listening;
  }

  /** Whether all changes are applied that are older than {@link CURRENT_MS}. */
  get isCurrent(): boolean {
    return this.#parts.clock.monotonic() - this.#currentAt < CURRENT_MS;
  }

  /** Applies changes if they are not current. Waits only briefly for a database that does not respond. Never rejects. */
  async refresh(): Promise<void> {
    const { clock } = this.#parts;
    const deadline = clock.monotonic() + WAIT_MS;
    while (!this.isCurrent && !(this.#isAway && !this.#hasResponded)) {
      const reading = this.#read().catch(() => undefined);
      const isLate = await this.#isLate(reading, Math.max(0, deadline - clock.monotonic()));
      if (!isLate) continue;
      // The database has responded, so what it said must be in effect first.
      if (this.#isApplying) await reading;
      else this.#failed(new Error(NO_RESPONSE));
    }
  }

  /** The caller must call this when the database has responded to anything. */
  databaseResponded(): void {
    if (this.#isAway) this.#hasResponded = true;
  }

  async #read(): Promise<void> {
    if (this.#reading !== undefined) return this.#reading;
    this.#reading = this.#apply().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #apply(): Promise<void> {
    const { store, apply, clock, logger } = this.#parts;
    const startedAt = clock.monotonic();
    this.#isReported = false;
    try {
      const counts = await this.#inTime(store.counts());
      this.#isApplying = true;
      const isFull = startedAt - this.#fullAt >= FULL_MS;
      for (const topic of TOPICS) {
        if (!isFull && this.#applied.get(topic) === counts[topic]) continue;
        await apply[topic]();
        this.#applied.set(topic, counts[topic]);
      }
      if (isFull) this.#fullAt = startedAt;
      this.#currentAt = startedAt;
      if (this.#isAway) logger.info({}, "the database responds again; all changes are applied");
      this.#isAway = false;
    } catch (error) {
      this.#failed(error);
      throw error;
    } finally {
      this.#isApplying = false;
    }
  }

  #failed(error: unknown): void {
    if (!this.#isAway) {
      const message = "changes of other instances cannot be read; this instance goes on with what it knows";
      this.#parts.logger.warn({ err: error }, message);
    }
    this.#isAway = true;
    this.#hasResponded = false;
  }

  #reported(): void {
    this.#isReported = true;
    this.#wake();
  }

  /** Ends early if a change is reported. */
  async #sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isReported) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#parts.clock.sleep(ms, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = () => undefined;
  }

  async #inTime<T>(response: Promise<T>): Promise<T> {
    if (await this.#isLate(response, RESPONSE_MS)) {
      throw new Error(NO_RESPONSE);
    }
    return response;
  }

  async #isLate(work: Promise<unknown>, ms: number): Promise<boolean> {
    const ended = new AbortController();
    const isOver = this.#parts.clock.sleep(ms, ended.signal).then(
      () => true,
      () => false,
    );
    const isDone = work.then(
      () => false,
      () => false,
    );
    const isLate = await Promise.race([isDone, isOver]);
    ended.abort();
    return isLate;
  }
}
