/** Milliseconds that a request waits for a repository to be opened; then the code host answers it (spec/svc.md 2.3). */
export const OPEN_WAIT_MS = 250;

interface Opening {
  readonly since: number;
  readonly done: Promise<unknown>;
  /** Requests that wait for it. */
  waiting: number;
  onLateFailure: ((error: unknown) => void) | undefined;
}

/**
 * Opens a repository once for all requests that come meanwhile. None of them waits for longer than {@link OPEN_WAIT_MS} after
 * it began.
 */
export class StoreOpening {
  readonly #open: () => Promise<unknown>;
  #running: Opening | undefined;

  constructor(open: () => Promise<unknown>) {
    this.#open = open;
  }

  /**
   * @param onLateFailure told what opening failed with after all who waited had left
   * @returns whether it is over in time
   * @throws what opening failed with
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

  /** Waits for what is under way. */
  async settled(): Promise<void> {
    await this.#running?.done.catch(() => undefined);
  }

  #begin(): Opening {
    const opening: Opening = {
      since: performance.now(),
      done: this.#open(),
      waiting: 0,
      onLateFailure: undefined,
    };
    const end = (): void => {
      if (this.#running === opening) this.#running = undefined;
    };
    opening.done.then(end, (error: unknown) => {
      end();
      if (opening.waiting === 0) opening.onLateFailure?.(error);
    });
    return opening;
  }
}
