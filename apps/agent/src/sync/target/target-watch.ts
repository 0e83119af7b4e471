import type { Clock, Logger } from "@devplat/base";
import { statSync, watch, type FSWatcher } from "node:fs";
import { dirname } from "node:path";

/** An editor's save is several steps; they are looked at together, in milliseconds. */
const SETTLE_MS = 250;
/** A program that undoes our change each time must not make us a loop; in milliseconds. */
const MIN_GAP_MS = 2000;

interface Watched {
  readonly watcher: FSWatcher;
  /** Which folder has the name: see {@link identityOf}. */
  readonly identity: string;
}

export interface TargetWatchParts {
  /** Whether a file differs from the one that the last cycle left. Our own writes do not count. */
  readonly isTouched: (file: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Notices when another program changes or removes a file that rules manage, so that it is corrected immediately. */
export class TargetWatch {
  readonly #parts: TargetWatchParts;
  readonly #folders = new Map<string, Watched>();
  #files: readonly string[] = [];
  #pending = false;
  #lastAt = -Infinity;
  #stopped = new AbortController();
  #onTouched: () => void = () => undefined;

  constructor(parts: TargetWatchParts) {
    this.#parts = parts;
  }

  /** Sets the listener for changes by other programs. */
  onTouched(listener: () => void): void {
    this.#onTouched = listener;
  }

  /** Watches the folders of these files and no others. Called after each cycle: folders come and go. */
  follow(files: readonly string[]): void {
    if (this.#stopped.signal.aborted) return;
    this.#files = files;
    const wanted = new Set(files.map((file) => dirname(file)));
    for (const [folder, { identity }] of this.#folders) {
      // A folder that was removed and made again is another one, of which the old watch hears nothing.
      if (!wanted.has(folder) || identityOf(folder) !== identity) this.#drop(folder);
    }
    for (const folder of wanted) if (!this.#folders.has(folder)) this.#open(folder);
  }

  close(): void {
    this.#stopped.abort();
    for (const folder of this.#folders.keys()) this.#drop(folder);
  }

  #open(folder: string): void {
    try {
      // Not persistent: it must not keep a process alive that has nothing else to do.
      const watcher = watch(folder, { persistent: false }, () => this.#look());
      // The folder was removed, or the system has no more watches. The poll notices changes instead.
      watcher.on("error", () => this.#drop(folder));
      this.#folders.set(folder, { watcher, identity: identityOf(folder) });
      // A change after the write and before the watch makes no event.
      this.#look();
    } catch {
      this.#parts.logger.debug(
        { folder },
        "folder of a target cannot be watched; it is looked at in each cycle",
      );
    }
  }

  #drop(folder: string): void {
    this.#folders.get(folder)?.watcher.close();
    this.#folders.delete(folder);
  }

  #look(): void {
    if (this.#pending) return;
    this.#pending = true;
    const { clock } = this.#parts;
    const wait = Math.max(SETTLE_MS, this.#lastAt + MIN_GAP_MS - clock.monotonic());
    clock
      .sleep(wait, this.#stopped.signal)
      .then(() => this.#check())
      .catch(() => undefined);
  }

  async #check(): Promise<void> {
    this.#pending = false;
    for (const file of this.#files) {
      if (!(await this.#parts.isTouched(file))) continue;
      this.#lastAt = this.#parts.clock.monotonic();
      this.#parts.logger.debug({ path: file }, "target changed by another program");
      this.#onTouched();
      return;
    }
  }
}

/** Device and number of the folder that has the name now; empty where there is none, or none to be seen. */
function identityOf(folder: string): string {
  try {
    const { dev, ino } = statSync(folder, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return "";
  }
}
