import type { Wait } from "./simulation.ts";

/** Something that happens once. Activities can wait for it. */
export class Latch {
  #waiting: (() => void)[] | undefined = [];

  /** Pause until {@link open}. */
  readonly wait: Wait = (resume) => {
    if (this.#waiting === undefined) resume();
    else this.#waiting.push(resume);
  };

  open(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const resume of waiting) resume();
  }
}
