/** Bytes between two flushes: a tenth of a second of a fast disk. */
const FLUSH_BYTES = 16 * 1024 * 1024;

/** A file that is being written. */
export interface Flushable {
  datasync(): Promise<void>;
}

/**
 * Flushes files while the next bytes arrive, so that the flush before their use has little left to wait for. One at a time,
 * because each flush blocks a thread that also writes and hashes.
 */
export class EarlyFlushes {
  readonly #every: number;
  #bytes = 0;
  #running: { readonly file: Flushable; readonly done: Promise<void> } | undefined;
  #failure: { readonly error: unknown } | undefined;

  /** @param every bytes between two flushes */
  constructor(every = FLUSH_BYTES) {
    this.#every = every;
  }

  /** Some bytes were written to a file. */
  wrote(file: Flushable, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes < this.#every || this.#running !== undefined) return;
    this.#bytes = 0;
    const done = file.datasync().catch((error: unknown) => void (this.#failure ??= { error }));
    this.#running = { file, done: done.finally(() => (this.#running = undefined)) };
  }

  /**
   * Waits until a file may be closed.
   *
   * @throws the error of a flush: the kernel reports it once, so the flush of the adoption may succeed after it
   */
  async settled(file: Flushable): Promise<void> {
    if (this.#running?.file === file) await this.#running.done;
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
