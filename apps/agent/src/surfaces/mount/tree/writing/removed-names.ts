import type { Timers } from "../../timers.ts";
import { pathOfPlace, type Place } from "./draft.ts";

/** Time in which a new file of a removed name is its replacement, in milliseconds. */
const WINDOW_MS = 30_000;

/** Names of secrets and fields that programs have removed. `tar` and `git` replace a file in this way. */
export class RemovedNames {
  readonly #timers: Timers;
  /** By path, with the end of the timer. */
  readonly #names = new Map<string, () => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  add(place: Place): void {
    const path = pathOfPlace(place);
    this.#names.get(path)?.();
    this.#names.set(
      path,
      this.#timers.after(WINDOW_MS, () => this.#names.delete(path)),
    );
  }

  has(place: Place): boolean {
    return this.#names.has(pathOfPlace(place));
  }
}
