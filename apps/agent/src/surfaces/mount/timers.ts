/** Timers of a loop that blocks in ppoll(2), where Node's own timers do not run. */
export class Timers {
  readonly #timers = new Map<number, { readonly dueMs: number; readonly run: () => void }>();
  readonly #now: () => number;
  #last = 0;
  /** No timer is due before this time. It can be too early after a timer was cancelled. */
  #nextMs = Number.POSITIVE_INFINITY;

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
    const dueMs = this.#now() + ms;
    this.#timers.set(id, { dueMs, run });
    this.#nextMs = Math.min(this.#nextMs, dueMs);
    return () => this.#timers.delete(id);
  }

  /** Milliseconds until {@link runDue} has to be called; undefined without a timer. */
  untilNext(): number | undefined {
    return this.#timers.size === 0 ? undefined : Math.max(0, this.#nextMs - this.#now());
  }

  /**
   * Runs what is due. It looks at each timer only when one can be due, because each request has one.
   * @returns whether something was due
   */
  runDue(): boolean {
    const now = this.#now();
    if (now < this.#nextMs) return false;
    this.#nextMs = Number.POSITIVE_INFINITY;
    let hasRun = false;
    for (const [id, { dueMs, run }] of this.#timers) {
      if (dueMs > now) {
        this.#nextMs = Math.min(this.#nextMs, dueMs);
        continue;
      }
      this.#timers.delete(id);
      run();
      hasRun = true;
    }
    return hasRun;
  }
}
