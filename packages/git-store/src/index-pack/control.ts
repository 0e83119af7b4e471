import { sliceDone } from "../slices.ts";
import { abortedError } from "./failure.ts";

/** Index of the only 64-bit field: bytes of the pack in the file. */
const AVAILABLE = 0;

// Indexes of the 32-bit fields after it.
const STATE = 2;
const CURSOR = 3;
const RUNNING = 4;
/** Changes with every call of the writer, so that the scanner cannot miss a change before it waits. */
const TURN = 5;
/** Progress of the scanner in {@link UNIT_BYTES}, because a pack may have more bytes than 32 bits can count. */
const SCANNED = 6;
/** Set while the writer waits for SCANNED to change, so that the scanner notifies only then. */
const WRITER_WAITS = 7;

const MEMORY_BYTES = 32;
const UNIT_BYTES = 64 * 1024;

// Values of STATE.
const WRITING = 0;
const ENDED = 1;
const ABORTED = 2;

/** Entries of one batch when threads share the roots. */
const BATCH = 64;

/**
 * Shared memory of the threads of one indexing run: progress of the writer, distribution of the roots, and whether
 * to stop.
 */
export class Control {
  readonly memory: SharedArrayBuffer;
  readonly #long: BigInt64Array;
  readonly #int: Int32Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(MEMORY_BYTES)) {
    this.memory = memory;
    this.#long = new BigInt64Array(memory, 0, 1);
    this.#int = new Int32Array(memory);
  }

  /** For the writer: reports that `bytes` of the pack are in the file. */
  wrote(bytes: number): void {
    Atomics.store(this.#long, AVAILABLE, BigInt(bytes));
    this.#wake();
  }

  /** For the writer: waits until the scanner is at most `ahead` bytes behind `written`, or the run is stopped. */
  async waitForScanner(written: number, ahead: number): Promise<void> {
    const needed = Math.floor(Math.max(0, written - ahead) / UNIT_BYTES);
    for (;;) {
      Atomics.store(this.#int, WRITER_WAITS, 1);
      const scanned = Atomics.load(this.#int, SCANNED);
      if (scanned >= needed || Atomics.load(this.#int, STATE) === ABORTED) break;
      await Atomics.waitAsync(this.#int, SCANNED, scanned).value;
    }
    Atomics.store(this.#int, WRITER_WAITS, 0);
  }

  /** For the scanner: reports that `bytes` of the pack are read. */
  scanned(bytes: number): void {
    Atomics.store(this.#int, SCANNED, Math.floor(bytes / UNIT_BYTES));
    if (Atomics.load(this.#int, WRITER_WAITS) === 1) Atomics.notify(this.#int, SCANNED);
  }

  /** For the writer: reports the end of the pack. */
  end(): void {
    Atomics.compareExchange(this.#int, STATE, WRITING, ENDED);
    this.#wake();
  }

  abort(): void {
    Atomics.store(this.#int, STATE, ABORTED);
    this.#wake();
    Atomics.notify(this.#int, RUNNING);
    Atomics.notify(this.#int, SCANNED);
  }

  /** Called by a thread after each slice of work. Throws when the run was stopped. */
  check(): void {
    sliceDone();
    if (Atomics.load(this.#int, STATE) === ABORTED) throw abortedError();
  }

  /** For the scanner: waits for more than `bytes` in the file, or for the end. @returns bytes in the file */
  waitBeyond(bytes: number): number {
    for (;;) {
      const state = Atomics.load(this.#int, STATE);
      const turn = Atomics.load(this.#int, TURN);
      const available = Number(Atomics.load(this.#long, AVAILABLE));
      if (state === ABORTED) throw abortedError();
      if (available > bytes || state === ENDED) return available;
      Atomics.wait(this.#int, TURN, turn);
    }
  }

  /** Returns the next batch of `[0, count)` as `[start, end)`, each to one caller only; undefined when none is left. */
  takeBatch(count: number): { start: number; end: number } | undefined {
    this.check();
    const start = Atomics.add(this.#int, CURSOR, BATCH);
    return start < count ? { start, end: Math.min(count, start + BATCH) } : undefined;
  }

  /** Called by each thread before its first batch. */
  enter(): void {
    Atomics.add(this.#int, RUNNING, 1);
  }

  /** Called by each thread after its last batch. */
  leave(): void {
    Atomics.sub(this.#int, RUNNING, 1);
    Atomics.notify(this.#int, RUNNING);
  }

  /**
   * Waits for the threads that have entered. A thread that enters later finds no batch, because the caller calls this
   * after the last batch was taken.
   */
  waitForOthers(): void {
    for (;;) {
      this.check();
      const running = Atomics.load(this.#int, RUNNING);
      if (running === 0) return;
      Atomics.wait(this.#int, RUNNING, running);
    }
  }

  #wake(): void {
    Atomics.add(this.#int, TURN, 1);
    Atomics.notify(this.#int, TURN);
  }
}
