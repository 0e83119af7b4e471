/** Work with pauses, so that its caller can let other work run. It returns its result. */
export type Steps<Result = void> = Generator<void, Result, undefined>;

/** Runs work to its end without a pause. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
