import { GrowingSums, type FileSums } from "../responses/block-sums.ts";
import type { PendingResponse } from "../responses/response-store.ts";
import { SLICE_BYTES, type Slice } from "../responses/slices.ts";
import type { Notifier } from "./notifier.ts";

interface TailChunk {
  readonly offset: number;
  readonly bytes: Buffer;
  /** Readers that it is lent to. */
  users: number;
  /** It is not in memory for others any more. */
  dropped: boolean;
}

/** Chunks that are lent to a reader. If they never come back, the garbage collector frees them. */
export interface LentChunks {
  readonly chunks: readonly Buffer[];
  /** Says that the reader has sent all bytes. */
  giveBack(): void;
}

/**
 * The bytes of one response that arrived: a part is written to the store, and the rest is in memory. If writing fails, or
 * there is nothing to write to, chunks stay in memory until they are dropped.
 */
export class ResponseBuffer {
  readonly #progress: Notifier;
  /** Checksums of the bytes that arrived. Bytes that are read back are compared with them. */
  readonly #sums = new GrowingSums();
  #pending: PendingResponse | undefined;
  #diskless = false;
  #diskError: unknown;
  /** Bytes that are not dropped, in their order. */
  #tail: TailChunk[] = [];
  #recycle: ((chunk: Buffer) => void) | undefined;
  #received = 0;
  #persisted = 0;
  #persisting = false;

  /** @param progress is notified when bytes were written, or cannot be */
  constructor(progress: Notifier) {
    this.#progress = progress;
  }

  /**
   * @param pending file that the bytes are written to; undefined: none
   * @param recycle called with each chunk that is dropped and that no reader has
   */
  open(pending: PendingResponse | undefined, recycle: ((chunk: Buffer) => void) | undefined): void {
    this.#pending = pending;
    this.#recycle = recycle;
    this.#diskless = pending === undefined;
  }

  /** Whether no more bytes are written: there is nothing to write to, or writing failed. */
  get diskless(): boolean {
    return this.#diskless;
  }

  get diskError(): unknown {
    return this.#diskError;
  }

  /** Whether bytes are being written. */
  get persisting(): boolean {
    return this.#persisting;
  }

  /** Bytes that arrived. */
  get received(): number {
    return this.#received;
  }

  /** Bytes in memory. */
  get held(): number {
    return this.#received - (this.#tail[0]?.offset ?? this.#received);
  }

  /** Checksums of all bytes that arrived so far. */
  get sums(): FileSums {
    return this.#sums.finish();
  }

  push(chunk: Buffer): void {
    this.#tail.push({ offset: this.#received, bytes: chunk, users: 0, dropped: false });
    this.#received += chunk.length;
    if (!this.#diskless) this.#sums.push(chunk);
  }

  /**
   * Writes the bytes in memory until there are none. Bytes that arrive during one write go with the next.
   *
   * @param written called after each write
   */
  async persist(written: () => void): Promise<void> {
    if (this.#persisting || this.#diskless) return;
    this.#persisting = true;
    while (this.#pending !== undefined && this.#persisted < this.#received && !this.#diskless) {
      const batch = this.#tail.filter((chunk) => chunk.offset >= this.#persisted).map((chunk) => chunk.bytes);
      const end = this.#received;
      try {
        await this.#pending.write(batch, this.#persisted);
        this.#persisted = end;
        written();
      } catch (error) {
        // Bytes on disk stay readable. The rest is kept for the readers that are here.
        this.#diskError = error;
        this.#diskless = true;
      }
      this.#progress.notify();
    }
    this.#persisting = false;
    this.#progress.notify();
  }

  /** How many of the first bytes are on disk in whole slices: they are read from there. */
  stored(readable: number): number {
    const onDisk = this.#pending === undefined ? 0 : Math.min(readable, this.#persisted);
    return onDisk - (onDisk % SLICE_BYTES);
  }

  /** Some stored bytes. @throws as {@link PendingResponse.slice} */
  async slice(offset: number, readable: number): Promise<Slice> {
    const pending = this.#pending;
    if (pending === undefined) throw new Error("nothing is stored");
    return await pending.slice(offset, this.stored(readable), this.#sums);
  }

  /** Bytes in memory; undefined: some of them are dropped. */
  lend(offset: number, end: number): LentChunks | undefined {
    // The search begins at the end, because a reader that has caught up needs the newest bytes.
    const first = this.#tail.findLastIndex((chunk) => chunk.offset <= offset);
    if (first < 0) return undefined;
    const lent = this.#tail.slice(first).filter((chunk) => chunk.offset < end);
    for (const chunk of lent) chunk.users++;
    return {
      chunks: lent.map(({ bytes, offset: from }) => bytes.subarray(Math.max(0, offset - from), end - from)),
      giveBack: () => {
        for (const chunk of lent) {
          chunk.users--;
          this.#free(chunk);
        }
      },
    };
  }

  /** Drops bytes from memory that no reader needs from there: those up to `end`. They must be written, or never be. */
  drop(end: number): void {
    const first = this.#tail.findIndex((chunk) => chunk.offset + chunk.bytes.length > end);
    const dropped = this.#tail.splice(0, first < 0 ? this.#tail.length : first);
    for (const chunk of dropped) {
      chunk.dropped = true;
      this.#free(chunk);
    }
  }

  #free(chunk: TailChunk): void {
    if (chunk.dropped && chunk.users === 0) this.#recycle?.(chunk.bytes);
  }
}
