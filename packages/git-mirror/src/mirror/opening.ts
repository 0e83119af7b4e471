/** Maximum milliseconds that a request waits for a repository to be opened. Then the upstream answers it. */
export const OPEN_WAIT_MS = 250;

interface Attempt {
  readonly since: number;
  readonly done: Promise<unknown>;
  /** Requests that wait for it. */
  waiting: number;
  onLateFailure: ((error: unknown) => void) | undefined;
}

/** Opens a repository once for all requests that arrive during the opening. None waits longer than {@link OPEN_WAIT_MS}. */
export class Opening {
  readonly #open: () => Promise<unknown>;
  #running: Attempt | undefined;

  constructor(open: () => Promise<unknown>) {
    this.#open = open;
  }

  /**
   * @param onLateFailure called with the error if opening fails after all waiting requests left
   * @returns whether the opening ended in time
   * @throws the error of the opening
   */
  async isDoneSoon(onLateFailure: (error: unknown) => void): Promise<boolean> {
    const running = (this.#running ??= this.#begin());
    const left = running.since + OPEN_WAIT_MS - performance.now();
    const late = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => late.resolve(false), Math.max(0, left));
    running.waiting++;
    try {
      const isDone = await Promise.race([running.done.then(() => true), late.promise]);
      if (!isDone) running.onLateFailure = onLateFailure;
      return isDone;
    } finally {
      running.waiting--;
      clearTimeout(timer);
    }
  }

  /** Waits for an opening in progress. */
  async settled(): Promise<void> {
    await this.#running?.done.catch(() => undefined);
  }

  #begin(): Attempt {
    const attempt: Attempt = {
      since: performance.now(),
      done: this.#open(),
      waiting: 0,
      onLateFailure: undefined,
    };
    const end = (): void => {
      if (this.#running === attempt) this.#running = undefined;
    };
    attempt.done.then(end, (error: unknown) => {
      end();
      if (attempt.waiting === 0) attempt.onLateFailure?.(error);
    });
    return attempt;
  }
}
