import { GrowingSums, StoredDataDamaged } from "../../responses/block-sums.ts";
import type { PendingResponse, StoredResponse } from "../../responses/response-store.ts";
import { SLICE_BYTES as FILE_SLICE_BYTES, type Slice } from "../../responses/slices.ts";
import { Notifier } from "../../coalescing/notifier.ts";

/** Pieces that stay in memory for readers that keep up: one that is sent, and the next one. */
const RECENT_PIECES = 2;
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
  /** The repository was purged, the service stops, or nobody wanted the response any more. */
  | { readonly kind: "ended" }
  | { readonly kind: "failed"; readonly error: unknown };

/**
 * The download of a response from the bucket, for all requests that want it. It goes to the local store as fast as it
 * arrives. Readers follow at their own speed: with the pieces as they arrive, or from the local copy.
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
  #readers = 0;
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
    return this.#state !== "failed" && !this.#isClosed && !this.#controller.signal.aborted;
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
    try {
      await this.#copy(signal);
      this.#state = "complete";
      this.#changed.notify();
      if (this.#parts.isCurrent()) {
        await this.#pending?.commit(this.#sums.finish());
        isStored = true;
      }
      return isStored ? { kind: "stored" } : { kind: "ended" };
    } catch (error) {
      // A copy that cannot be committed is complete for its readers.
      if (this.#state === "running") this.#state = "failed";
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
    this.#readers++;
    let isOpen = true;
    return {
      size: this.#parts.size,
      source: "object",
      crowded: () => false,
      slice: async (offset) => await this.#slice(offset),
      close: async () => {
        if (!isOpen) return;
        isOpen = false;
        await this.#leave();
      },
    };
  }

  async #copy(signal: AbortSignal): Promise<void> {
    const { size, download, create } = this.#parts;
    const pending = (this.#pending = await create());
    for await (const bytes of download(signal)) {
      signal.throwIfAborted();
      const offset = this.#received;
      this.#sums.push(bytes);
      this.#received += bytes.length;
      this.#recent = [...this.#recent.slice(1 - RECENT_PIECES), { offset, bytes }];
      this.#changed.notify();
      await pending.write([bytes], offset);
      this.#written = this.#received;
      this.#changed.notify();
    }
    signal.throwIfAborted();
    if (this.#received !== size) throw new StoredDataDamaged("a response in the bucket has another length");
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
    return this.#state === "complete" ? this.#written : this.#written - (this.#written % FILE_SLICE_BYTES);
  }

  async #leave(): Promise<void> {
    this.#readers--;
    const isWorthIt = this.#received >= this.#parts.size * WORTH_FINISHING;
    if (this.#readers === 0 && this.#state === "running" && !isWorthIt)
      this.abort(new Error("no request waits for the response"));
    await this.#closeIfUnused();
  }

  /** A reader that comes later would read from a closed file, so there is none after this. */
  async #closeIfUnused(): Promise<void> {
    if (!this.#isOver || this.#readers > 0 || this.#isClosed) return;
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
