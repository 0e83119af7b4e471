import { closeSync, constants, fstatSync, openSync, type Stats } from "node:fs";
import { close, fstat, futimes, open } from "node:fs";
import { promisify } from "node:util";
import { ifExists, systemCode } from "@devplat/base";

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** A larger file may have been removed while it is open, and then closing it takes as long as giving its blocks back. */
const QUICK_CLOSE_BYTES = 1024 * 1024;

const openLater = promisify(open);
const statLater = promisify(fstat);
const utimesLater = promisify(futimes);
const closeLater = promisify(close);

/**
 * A regular file that is open for reading. A `FileHandle` costs several times as much CPU, and so does a turn of the thread
 * pool for each call.
 */
export class ReadFile {
  readonly fd: number;
  /** As the file was when it was opened. */
  readonly facts: Stats;
  /** It was opened without the thread pool. */
  readonly #isWarm: boolean;
  #isClosed = false;

  private constructor(fd: number, facts: Stats, isWarm: boolean) {
    this.fd = fd;
    this.facts = facts;
    this.#isWarm = isWarm;
  }

  /**
   * Opens a file. Symbolic links are refused.
   *
   * @param isWarm the file was open a moment ago: the system has its name and inode in memory, so that the calls do not wait
   * for a disk. They are then made without the thread pool
   * @returns undefined: there is no such file
   * @throws a system error
   */
  static open(path: string, isWarm: boolean): ReadFile | undefined | Promise<ReadFile | undefined> {
    if (!isWarm) return ReadFile.#openLater(path);
    const fd = openNow(path);
    if (fd === undefined) return undefined;
    try {
      return new ReadFile(fd, fstatSync(fd), true);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  static async #openLater(path: string): Promise<ReadFile | undefined> {
    const fd = await ifExists(openLater(path, FLAGS, 0));
    if (fd === undefined) return undefined;
    try {
      return new ReadFile(fd, await statLater(fd), false);
    } catch (error) {
      await closeLater(fd);
      throw error;
    }
  }

  /** As the file is now. @throws a system error */
  async stat(): Promise<Stats> {
    this.#check();
    return this.#isWarm ? fstatSync(this.fd) : await statLater(this.fd);
  }

  /** Sets the times of access and modification, in seconds since the epoch. @throws a system error */
  async utimes(accessed: number, modified: number): Promise<void> {
    this.#check();
    await utimesLater(this.fd, accessed, modified);
  }

  /** Closes the file. Calling it again does nothing: the number of the descriptor may be another file's by then. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.facts.size <= QUICK_CLOSE_BYTES || this.#hasName()) closeSync(this.fd);
    else await closeLater(this.fd);
  }

  /** Whether it was not removed: then its blocks stay when it is closed. */
  #hasName(): boolean {
    return this.#isWarm && fstatSync(this.fd).nlink > 0;
  }

  #check(): void {
    if (this.#isClosed) throw new Error("the file is closed");
  }
}

function openNow(path: string): number | undefined {
  try {
    return openSync(path, FLAGS);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
