/** Runs actions one after another, in the order of the calls. After a failure, the next action runs. */
export class Serializer {
  #last: Promise<unknown> = Promise.resolve();

  /** Runs the action after all earlier ones have ended. @returns its result @throws its error */
  run<Result>(action: () => Result | Promise<Result>): Promise<Result> {
    const turn = this.#last.then(action);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when all actions so far have ended. Never rejects. */
  async settled(): Promise<void> {
    await this.#last;
  }
}
