/** Calls back once when nothing was reported for a time. Cheap to report to: no timer is set up per event. */
export class IdleTimer {
  readonly #idleMs: number;
  readonly #onIdle: () => void;
  #lastMs = performance.now();
  #paused = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(idleMs: number, onIdle: () => void) {
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#arm(idleMs);
  }

  /** Something happened. */
  touch(): void {
    this.#lastMs = performance.now();
  }

  /** Time does not count until `resume`: it is not the watched side's turn. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.touch();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => {
      const left = this.#lastMs + this.#idleMs - performance.now();
      if (this.#paused) this.#arm(this.#idleMs);
      else if (left > 0) this.#arm(left);
      else this.#onIdle();
    }, Math.ceil(ms));
    this.#timer.unref();
  }
}
