/** Timers of a loop that blocks in ppoll(2), where Node's own timers do not run. */
export class Timers {
  readonly #timers = new Map<number, { readonly dueMs: number; readonly run: () => void }>();
  readonly #now: () => number;
  #last = 0;

  /** @param now a monotonic clock, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  now(): number {
    return this.#now();
  }

  /** Runs something once, in `ms` milliseconds. @returns a function that cancels it */
  after(ms: number, run: () => void): () => void {
    const id = ++this.#last;
    this.#timers.set(id, { dueMs: this.#now() + ms, run });
    return () => this.#timers.delete(id);
  }

  /** Milliseconds until the next timer is due; undefined without one. */
  untilNext(): number | undefined {
    let next: number | undefined;
    for (const { dueMs } of this.#timers.values()) if (next === undefined || dueMs < next) next = dueMs;
    return next === undefined ? undefined : Math.max(0, next - this.#now());
  }

  /** Runs what is due. */
  runDue(): void {
    const now = this.#now();
    for (const [id, { dueMs, run }] of this.#timers) {
      if (dueMs > now) continue;
      this.#timers.delete(id);
      run();
    }
  }
}
