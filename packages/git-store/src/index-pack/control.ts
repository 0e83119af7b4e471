import { sliceDone } from "../slice-hook.ts";
import { abortedError } from "./failure.ts";

/** The one 64-bit field: bytes of the pack in the file. */
const AVAILABLE = 0;

// The 32-bit fields behind it.
const STATE = 2;
const CURSOR = 3;
const RUNNING = 4;
/** Changes with every call of the writer, so that a scanner which looked before it cannot sleep through it. */
const TURN = 5;
/** How far the scanner has read, in units of {@link UNIT_BYTES}: the field has 32 bits, a pack may have more bytes. */
const SCANNED = 6;
/** Set while the writer waits for SCANNED to change: nobody is woken in vain. */
const WRITER_WAITS = 7;

const MEMORY_BYTES = 32;
const UNIT_BYTES = 64 * 1024;

// Values of STATE.
const WRITING = 0;
const ENDED = 1;
const ABORTED = 2;

/** Entries taken at a time when roots are shared out. */
const BATCH = 64;

/**
 * What the threads of one indexing run tell each other, in shared memory: how far the pack is written, who takes
 * which roots, and whether to stop.
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

  /** The writer: `bytes` of the pack are in the file. */
  wrote(bytes: number): void {
    Atomics.store(this.#long, AVAILABLE, BigInt(bytes));
    this.#wake();
  }

  /** The writer: waits until the scanner is no more than `ahead` bytes behind `written`, or the run is stopped. */
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

  /** The scanner: `bytes` of the pack are read. */
  scanned(bytes: number): void {
    Atomics.store(this.#int, SCANNED, Math.floor(bytes / UNIT_BYTES));
    if (Atomics.load(this.#int, WRITER_WAITS) === 1) Atomics.notify(this.#int, SCANNED);
  }

  /** The writer: no more will come. */
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

  /** The end of a slice in a thread. Throws when the run was stopped. */
  check(): void {
    sliceDone();
    if (Atomics.load(this.#int, STATE) === ABORTED) throw abortedError();
  }

  /** The scanner: waits until more than `bytes` are in the file or none will come. @returns bytes in the file */
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

  /** Gives each caller other entries of `[0, count)`, as `[start, end)`; undefined when all are given. */
  takeBatch(count: number): { start: number; end: number } | undefined {
    this.check();
    const start = Atomics.add(this.#int, CURSOR, BATCH);
    return start < count ? { start, end: Math.min(count, start + BATCH) } : undefined;
  }

  /** Each thread, before it takes its first batch. */
  enter(): void {
    Atomics.add(this.#int, RUNNING, 1);
  }

  /** Each thread, after its last batch is done. */
  leave(): void {
    Atomics.sub(this.#int, RUNNING, 1);
    Atomics.notify(this.#int, RUNNING);
  }

  /**
   * Waits for the threads that have entered. One that enters later finds no batch left, because the caller has
   * already seen the end of them.
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
