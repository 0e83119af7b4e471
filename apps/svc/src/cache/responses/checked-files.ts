import type { Clock } from "@devplat/base";

/** Milliseconds after which a file is checked again. Files that changed on disk are not served after this time. */
export const RECHECK_MS = 3_600_000;

interface Checked {
  /** In `clock.monotonic()`; undefined: the first check is running. */
  at: number | undefined;
  running: Promise<boolean> | undefined;
}

/** Remembers which stored responses of a repository were found whole, or were written by this process, and when. */
export class CheckedFiles {
  readonly #clock: Clock;
  readonly #files = new Map<string, Checked>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** This process wrote the file, and checked what it wrote. */
  written(name: string): void {
    this.#files.set(name, { at: this.#clock.monotonic(), running: undefined });
  }

  forget(name: string): void {
    this.#files.delete(name);
  }

  clear(): void {
    this.#files.clear();
  }

  /**
   * Whether the file is known to be whole. All callers wait for its first check. An old check is repeated by its next
   * caller, and the other callers use the known result.
   *
   * @param check reads the file through
   * @throws what `check` rejects with
   */
  async isSound(name: string, check: () => Promise<boolean>): Promise<boolean> {
    const known = this.#files.get(name) ?? { at: undefined, running: undefined };
    const { at, running } = known;
    if (at !== undefined && (running !== undefined || this.#clock.monotonic() - at < RECHECK_MS)) return true;
    if (running !== undefined) return await running;
    this.#files.set(name, known);
    known.running = this.#check(name, known, check);
    return await known.running;
  }

  async #check(name: string, known: Checked, check: () => Promise<boolean>): Promise<boolean> {
    let sound = false;
    try {
      sound = await check();
      return sound;
    } finally {
      known.at = this.#clock.monotonic();
      known.running = undefined;
      // A file that was forgotten or written again during the check is another file.
      if (!sound && this.#files.get(name) === known) this.#files.delete(name);
    }
  }
}
