import type { Clock } from "@devplat/base";
import type { LendSettings } from "./child-tokens.ts";

/** Wait after a failure and the longest wait, in milliseconds. Each wait doubles: a trial may make a token in the store. */
const FIRST_WAIT_MS = 10_000;
const MAX_WAIT_MS = 5 * 60_000;

export interface ProblemWatchParts {
  /** Tries whether a token can be lent. @returns whether nothing could be lent. Never rejects */
  readonly recheck: (borrower: string, settings: LendSettings) => Promise<boolean>;
  readonly clock: Clock;
  /** Fires when lending ends. */
  readonly stopped: AbortSignal;
}

interface Watched {
  settings: LendSettings;
  readonly stop: AbortController;
}

/** Keeps the reasons up to date why borrowers get no token: somebody may have changed a policy since the last request. */
export class ProblemWatch {
  readonly #parts: ProblemWatchParts;
  readonly #watched = new Map<string, Watched>();

  constructor(parts: ProblemWatchParts) {
    this.#parts = parts;
  }

  /** Watches a borrower that could not be lent a token, until it can. */
  follow(borrower: string, settings: LendSettings): void {
    const present = this.#watched.get(borrower);
    if (present !== undefined) present.settings = settings;
    else void this.#watch(borrower, { settings, stop: new AbortController() });
  }

  /** Looks at all borrowers now. */
  async look(): Promise<void> {
    await Promise.all([...this.#watched].map(([borrower, watched]) => this.#look(borrower, watched)));
  }

  /** Ends the watch over a borrower. */
  end(borrower: string): void {
    this.#watched.get(borrower)?.stop.abort();
    this.#watched.delete(borrower);
  }

  async #watch(borrower: string, watched: Watched): Promise<void> {
    const { clock, stopped } = this.#parts;
    this.#watched.set(borrower, watched);
    const signal = AbortSignal.any([stopped, watched.stop.signal]);
    for (let wait = FIRST_WAIT_MS; !signal.aborted; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
      await clock.sleep(wait, signal).catch(() => undefined);
      if (!signal.aborted) await this.#look(borrower, watched);
    }
  }

  async #look(borrower: string, watched: Watched): Promise<void> {
    const fails = await this.#parts.recheck(borrower, watched.settings);
    if (!fails && this.#watched.get(borrower) === watched) this.end(borrower);
  }
}
