import { GrowingSums, StoredDataDamaged } from "../../responses/block-sums.ts";
import type { PendingResponse, StoredResponse } from "../../responses/response-store.ts";
import { SLICE_BYTES as FILE_SLICE_BYTES, type Slice } from "../../responses/slices.ts";
import { Notifier } from "../../coalescing/notifier.ts";

/** Pieces that stay in memory for readers that keep up: one that is sent, and the next one. */
const RECENT_PIECES = 2;
/** Bytes in memory that the download may be ahead of its slowest reader, if they cannot be written to the disk. */
const MAX_AHEAD_BYTES = 4 * 1024 * 1024;
/** Part of the response after which the download goes on without readers: to begin again would cost more than the rest. */
const WORTH_FINISHING = 0.5;

export interface HydrationParts {
  /** Bytes of the response. */
  readonly size: number;
  /** The response, in pieces that were compared with their checksums. @throws if the bucket fails or has other bytes */
  readonly download: (signal: AbortSignal) => AsyncIterable<Buffer>;
  /** Starts the local copy. */
  readonly create: () => Promise<PendingResponse>;
  /** Whether the copy may still be kept. */
  readonly isCurrent: () => boolean;
}

interface Piece {
  readonly offset: number;
  readonly bytes: Buffer;
}

/** Result of a hydration. */
export type HydrationEnd =
  | { readonly kind: "stored" }
  /** The readers got the whole response, but the disk could not keep it. */
  | { readonly kind: "unstored"; readonly error: unknown }
  /** The repository was purged, the service stops, or nobody wanted the response any more. */
  | { readonly kind: "ended" }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * The download of a response from the bucket, for all requests that want it. It goes to the local store as fast as it
 * arrives. Readers follow at their own speed: with the pieces as they arrive, or from the local copy. If the disk fails, the
 * rest goes through memory, at the speed of the slowest reader.
 */
export class Hydration {
  readonly #parts: HydrationParts;
  readonly #controller = new AbortController();
  readonly #changed = new Notifier(() => false);
  readonly #sums = new GrowingSums();
  #pending: PendingResponse | undefined;
  #recent: readonly Piece[] = [];
  #received = 0;
  #written = 0;
  /** Readers, with the position from which each one still needs the response. */
  readonly #readers = new Set<{ position: number }>();
  /** End of the last piece that is no longer in memory. */
  #dropped = 0;
  /** Fault of the disk, after which nothing is written. */
  #diskFault: { readonly error: unknown } | undefined;
  /** The download is over. */
  #isOver = false;
  #isClosed = false;
  #state: "running" | "complete" | "failed" = "running";
  #cause: unknown;

  constructor(parts: HydrationParts) {
    this.#parts = parts;
  }

  /** Whether a new reader can get the whole response. */
  get isJoinable(): boolean {
    if (this.#state === "failed" || this.#isClosed || this.#controller.signal.aborted) return false;
    return this.#diskFault === undefined || this.#dropped <= this.#readable();
  }

  /** Ends the download, and its readers. */
  abort(reason: Error): void {
    this.#controller.abort(reason);
    this.#changed.notify();
  }

  /** Downloads the response and keeps it. Never rejects. @param stopping fires when the service stops */
  async run(stopping: AbortSignal): Promise<HydrationEnd> {
    const signal = AbortSignal.any([this.#controller.signal, stopping]);
    let isStored = false;
    signal.addEventListener("abort", () => this.#changed.notify(), { once: true });
    try {
      await this.#copy(signal);
      this.#state = "complete";
      this.#changed.notify();
      if (this.#parts.isCurrent() && this.#diskFault === undefined) {
        await this.#onDisk(async () => this.#pending?.commit(this.#sums.finish()));
        isStored = this.#diskFault === undefined;
      }
      if (this.#diskFault !== undefined) return { kind: "unstored", error: this.#diskFault.error };
      return isStored ? { kind: "stored" } : { kind: "ended" };
    } catch (error) {
      this.#state = "failed";
      this.#cause = error;
      this.#changed.notify();
      return signal.aborted ? { kind: "ended" } : { kind: "failed", error };
    } finally {
      if (!isStored) await this.#pending?.discard();
      this.#isOver = true;
      await this.#closeIfUnused();
    }
  }

  /** A view of the response for one request. Its slices arrive when they are downloaded. */
  join(): StoredResponse {
    const reader = { position: 0 };
    this.#readers.add(reader);
    let isOpen = true;
    return {
      size: this.#parts.size,
      source: "object",
      crowded: () => false,
      slice: async (offset) => {
        reader.position = offset;
        if (this.#diskFault !== undefined) this.#prune();
        return await this.#slice(offset);
      },
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        this.#readers.delete(reader);
        await this.#leave();
      },
    };
  }

  async #copy(signal: AbortSignal): Promise<void> {
    const { size, download, create } = this.#parts;
    await this.#onDisk(async () => (this.#pending = await create()));
    for await (const bytes of download(signal)) {
      signal.throwIfAborted();
      const offset = this.#received;
      this.#sums.push(bytes);
      this.#received += bytes.length;
      this.#recent = [...this.#recent, { offset, bytes }];
      this.#prune();
      this.#changed.notify();
      if (this.#diskFault === undefined) {
        await this.#onDisk(async () => {
          await this.#pending?.write([bytes], offset);
          this.#written = this.#received;
        });
        this.#changed.notify();
      }
      while (this.#isAhead() && !signal.aborted) await this.#changed.wait();
    }
    signal.throwIfAborted();
    if (this.#received !== size) throw new StoredDataDamaged("a response in the bucket has another length");
  }

  /** Does something on the disk. Its failure is kept, and ends nothing. */
  async #onDisk(action: () => Promise<unknown>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#diskFault = { error };
    }
  }

  /** Removes pieces from memory that no reader needs, or that can be read from the local copy. */
  #prune(): void {
    const needed =
      this.#diskFault === undefined
        ? Math.min(this.#written, this.#recent.at(-RECENT_PIECES)?.offset ?? 0)
        : Math.max(this.#readable(), Math.min(this.#received, ...this.#positions()));
    const kept = this.#recent.filter(({ offset, bytes }) => offset + bytes.length > needed);
    const last = this.#recent.at(this.#recent.length - kept.length - 1);
    if (last === undefined || kept.length === this.#recent.length) return;
    this.#dropped = last.offset + last.bytes.length;
    this.#recent = kept;
    this.#changed.notify();
  }

  *#positions(): Iterable<number> {
    for (const { position } of this.#readers) yield position;
  }

  /** Whether the download must wait for its readers. Without any, it ends. */
  #isAhead(): boolean {
    if (this.#diskFault === undefined || this.#readers.size === 0) return false;
    return this.#recent.reduce((sum, { bytes }) => sum + bytes.length, 0) >= MAX_AHEAD_BYTES;
  }

  async #slice(offset: number): Promise<Slice> {
    for (;;) {
      const { reason, aborted } = this.#controller.signal;
      if (aborted) throw broken(reason);
      const piece = this.#recent.find((each) => isIn(each, offset));
      if (piece !== undefined) {
        const bytes = piece.bytes.subarray(offset - piece.offset);
        return { bytes, release: () => undefined, abandon: () => undefined };
      }
      const readable = this.#readable();
      if (offset < readable && this.#pending !== undefined)
        return await this.#pending.slice(offset, readable, this.#sums);
      if (this.#state === "failed") throw broken(this.#cause);
      await this.#changed.wait();
    }
  }

  /** Bytes that can be read from the local copy: whole slices, because they are kept in memory by their number. */
  #readable(): number {
    const isWhole = this.#state === "complete" && this.#diskFault === undefined;
    return isWhole ? this.#written : this.#written - (this.#written % FILE_SLICE_BYTES);
  }

  async #leave(): Promise<void> {
    const isWorthIt = this.#diskFault === undefined && this.#received >= this.#parts.size * WORTH_FINISHING;
    if (this.#diskFault !== undefined) this.#prune();
    if (this.#readers.size === 0 && this.#state === "running" && !isWorthIt)
      this.abort(new Error("no request waits for the response"));
    await this.#closeIfUnused();
  }

  /** A reader that comes later would read from a closed file, so there is none after this. */
  async #closeIfUnused(): Promise<void> {
    if (!this.#isOver || this.#readers.size > 0 || this.#isClosed) return;
    this.#isClosed = true;
    this.#recent = [];
    await this.#pending?.close();
  }
}

function isIn({ offset, bytes }: Piece, position: number): boolean {
  return position >= offset && position < offset + bytes.length;
}

/** The error that ends a response within it: the client is told to try again. */
function broken(cause: unknown): StoredDataDamaged {
  return new StoredDataDamaged("a response from the bucket broke off", cause);
}
