import type { Clock } from "@devplat/base";

/** Milliseconds after which a file is checked again. Files that changed on disk are not served after this time. */
export const RECHECK_MS = 3_600_000;

/** Milliseconds by which one time of modification may differ between writing and reading it. */
const SAME_TIME_MS = 0.01;

/** Requests can find a file as it was some changes of its time ago. */
const KNOWN_TIMES = 8;

interface Checked {
  /** Tells the file from others that had or get its name. */
  readonly identity: string;
  /** In `clock.monotonic()`; undefined: the first check is running. */
  at: number | undefined;
  running: Promise<boolean> | undefined;
  /** Times that this process has found or set since the last whole check. None: another program has changed the file. */
  times: readonly KnownTimes[];
}

/** Times of a file, in milliseconds since the epoch. Programs can set the first one, but not the second. */
export interface FileTimes {
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

interface KnownTimes {
  readonly mtimeMs: number;
  /** Undefined until a file with this `mtimeMs` is found: this process is about to set it. */
  ctimeMs: number | undefined;
}

/** A file that has or had a name. */
export interface NamedFile {
  readonly name: string;
  /** Tells it from others that had or get the name: requests can still read a file that was replaced. */
  readonly identity: string;
}

/** Remembers which stored responses of a repository were found whole, or were written by this process, and when. */
export class CheckedFiles {
  readonly #clock: Clock;
  readonly #files = new Map<string, Checked>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * This process wrote the file, and checked what it wrote. Call it before the file gets its name, so that it is known when it
   * is found.
   *
   * @param mtimeMs its time of modification
   */
  written({ name, identity }: NamedFile, mtimeMs: number): void {
    const at = this.#clock.monotonic();
    this.#files.set(name, { identity, at, running: undefined, times: [{ mtimeMs, ctimeMs: undefined }] });
  }

  /** The file was found with these times. If another program has changed it, it is checked again. */
  seen(file: NamedFile, times: FileTimes): void {
    const known = this.#find(file);
    if (known !== undefined && !isKnown(known, times)) distrust(known);
  }

  /** This process is about to set the time of modification. Call {@link seen} before and after. */
  touched(file: NamedFile, mtimeMs: number): void {
    const known = this.#find(file);
    if (known !== undefined && known.times.length > 0) learn(known, { mtimeMs, ctimeMs: undefined });
  }

  /**
   * If no other program has changed the file since it was last checked or written whole, as its times tell, returns a function
   * that tells whether this is still so. It goes on to work for the open file when the name is forgotten.
   */
  unchanged(file: NamedFile): UnchangedFile | undefined {
    const known = this.#find(file);
    if (known === undefined || known.times.length === 0) return undefined;
    return async (times, mustCheck, check) => {
      if (isKnown(known, times) && !mustCheck) return true;
      const isSound = await check();
      if (isSound) learn(known, { ...times });
      else distrust(known);
      return isSound;
    };
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
   * @param times of the file now
   * @throws what `check` rejects with
   */
  async isSound(file: NamedFile, times: FileTimes, check: () => Promise<boolean>): Promise<boolean> {
    const { name, identity } = file;
    const known = this.#find(file) ?? { identity, at: undefined, running: undefined, times: [] };
    const { at, running } = known;
    if (at !== undefined && (running !== undefined || this.#clock.monotonic() - at < RECHECK_MS)) return true;
    if (running !== undefined) return await running;
    this.#files.set(name, known);
    known.running = this.#check(name, known, times, check);
    return await known.running;
  }

  /** Undefined: the name belongs to another file, or nothing is known of it. */
  #find({ name, identity }: NamedFile): Checked | undefined {
    const known = this.#files.get(name);
    return known?.identity === identity ? known : undefined;
  }

  async #check(
    name: string,
    known: Checked,
    times: FileTimes,
    check: () => Promise<boolean>,
  ): Promise<boolean> {
    let sound = false;
    // A change while it runs shows as another time.
    known.times = [{ ...times }];
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

/**
 * Whether the file is as it was. Where its times are not known, a program has changed the file, or only its times or links: it is
 * checked.
 *
 * @param mustCheck whether it is checked in any case
 * @param check reads the file through
 * @throws what `check` rejects with
 */
export type UnchangedFile = (
  times: FileTimes,
  mustCheck: boolean,
  check: () => Promise<boolean>,
) => Promise<boolean>;

function isKnown(known: Checked, { mtimeMs, ctimeMs }: FileTimes): boolean {
  for (const time of known.times) {
    if (!isSameTime(time.mtimeMs, mtimeMs)) continue;
    time.ctimeMs ??= ctimeMs;
    if (isSameTime(time.ctimeMs, ctimeMs)) return true;
  }
  return false;
}

function learn(known: Checked, times: KnownTimes): void {
  known.times = [...known.times.slice(1 - KNOWN_TIMES), times];
}

function distrust(known: Checked): void {
  known.times = [];
  known.at = undefined;
}

function isSameTime(a: number, b: number): boolean {
  return Math.abs(a - b) < SAME_TIME_MS;
}
