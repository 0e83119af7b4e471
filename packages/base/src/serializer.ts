/** Runs actions one after another, in the order in which they were handed in. A failure does not stop the next ones. */
export class Serializer {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the action after all earlier ones have ended. @returns its result @throws what it throws */
  run<Result>(action: () => Result | Promise<Result>): Promise<Result> {
    const turn = this.#last.then(action);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when the actions handed in so far have ended. Never rejects. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
