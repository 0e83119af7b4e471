import type { ResponseCheck } from "../responses/response-check.ts";
import { GrowingSums, StoredDataDamaged, type FileSums } from "../responses/block-sums.ts";
import type { PendingResponse } from "../responses/response-store.ts";
import { SLICE_BYTES, type Slice } from "../responses/slices.ts";

/** Bytes that arrived and are not on disk yet, at most; then the code host is read no faster than the disk writes. */
const MAX_TAIL_BYTES = 8 * 1024 * 1024;
/** With more readers than this, what arrives within a few milliseconds is sent to each of them with one call. */
const FEW_READERS = 8;
const GATHER_MS = 5;

/** The answer broke off, or a reader's part of the file cannot be read. */
export class ResponseCut extends Error {
  /** Whether an error packet now belongs on side-band 3. */
  readonly inPackfile: boolean;
  /** Whether the fault is this service's own, not the code host's. */
  readonly isOwn: boolean;

  constructor(inPackfile: boolean, cause?: unknown) {
    const isOwn = cause instanceof StoredDataDamaged;
    super(isOwn ? "an answer from stored data broke off" : "the code host's answer broke off", { cause });
    this.name = "ResponseCut";
    this.inPackfile = inPackfile;
    this.isOwn = isOwn;
  }
}

/** Bytes for a reader: a slice of the file, which the reader gives back, or the chunks as they arrived. */
export type ResponsePart =
  | { readonly kind: "stored"; readonly slice: Slice }
  | { readonly kind: "live"; readonly chunks: readonly Buffer[] };

/** One client's place in a coalesced fetch. Leaving twice does nothing. */
export interface FetchReader {
  /** The next bytes, or undefined at the end. @throws ResponseCut */
  read(): Promise<ResponsePart | undefined>;
  leave(): void;
}

/** Result of a coalesced fetch. */
export interface FetchOutcome {
  /** The whole answer is in the file and may be stored. */
  readonly storable: boolean;
  /** Why not; undefined if it is storable. */
  readonly reason: string | undefined;
  /** The disk failed on the way; the readers did not notice. */
  readonly diskError: unknown;
  readonly bytes: number;
}

interface TailChunk {
  readonly offset: number;
  readonly bytes: Buffer;
}

interface Place {
  offset: number;
}

/**
 * One upstream answer, shared by everyone who asked the same at the same time. It is drained to a file as fast as it
 * comes; each reader follows at its own speed, from the file, or with the chunks as they arrive if it has caught up.
 * Readers are given whole packets only, so that an error packet can follow wherever the answer breaks.
 *
 * If the disk fails, or there is no file, the chunks are kept in memory until all present readers have them, and the
 * slowest of them sets the pace; nobody can join then.
 */
export class CoalescedFetch {
  readonly #check: ResponseCheck;
  readonly #controller = new AbortController();
  readonly #shared = Promise.withResolvers<boolean>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #delivered = Promise.withResolvers<void>();
  #sharing: boolean | undefined;
  readonly #places = new Set<Place>();
  /** Checksums of the bytes that arrived. Bytes that are read back are compared with them. */
  readonly #sums = new GrowingSums();
  #pending: PendingResponse | undefined;
  /** Whether nothing more goes to disk: there is no file, or writing failed. */
  #diskless = false;
  #diskError: unknown;
  /** Bytes that arrived and are not a whole slice on disk; without a disk, bytes that some reader has not had yet. */
  #tail: TailChunk[] = [];
  #received = 0;
  #persisted = 0;
  #persisting = false;
  #state: "running" | "complete" | "cut" = "running";
  #closed = false;
  #cause: unknown;
  #wake = Promise.withResolvers<void>();
  #waking = false;

  constructor(check: ResponseCheck) {
    this.#check = check;
  }

  /** Aborts when nobody is left. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * True once others may read too: a pack byte came, or the whole answer. False if this answer is only for the caller
   * that asked for it: a refusal, an error before the pack, no file.
   */
  get shared(): Promise<boolean> {
    return this.#shared.promise;
  }

  /** Whether a new reader would find the answer from its beginning on. */
  get joinable(): boolean {
    if (this.#closed || this.#diskless || this.#state === "cut" || this.signal.aborted) return false;
    return this.#sharing !== false && this.#check.fault === undefined;
  }

  /** Ends joining: the fetch is not found any more. */
  close(): void {
    this.#closed = true;
    this.#end();
  }

  /**
   * Resolves when the response ended, the fetch is closed, and the last reader left. Only then may what it is written to
   * be closed: its descriptor could belong to another file when somebody who joined late reads from it.
   */
  get closed(): Promise<void> {
    return this.#ended.promise;
  }

  /** Whether the answer has arrived to its end. */
  get complete(): boolean {
    return this.#state === "complete";
  }

  /** Resolves when the answer ended and a reader has had all of it, or no reader is left. */
  get delivered(): Promise<void> {
    return this.#delivered.promise;
  }

  /** Checksums of all that arrived so far. */
  get sums(): FileSums {
    return this.#sums.finish();
  }

  /** What broke the disk, so far. */
  get diskError(): unknown {
    return this.#diskError;
  }

  /** The response must not be shared. Those who wait to join go on alone. */
  abandon(): void {
    this.#decideSharing(false);
  }

  join(): FetchReader {
    const place: Place = { offset: 0 };
    this.#places.add(place);
    return {
      read: () => this.#read(place),
      leave: () => {
        if (!this.#places.delete(place)) return;
        this.#dropTail();
        if (this.#places.size === 0 && this.#state === "running") this.#controller.abort();
        this.#deliver();
        this.#end();
        this.#notify();
      },
    };
  }

  /**
   * Drains the answer; resolves when it ended and all that can be on disk is. Never rejects.
   *
   * @param pending what it is written to; undefined: nothing
   */
  async run(chunks: AsyncIterable<Buffer>, pending: PendingResponse | undefined): Promise<FetchOutcome> {
    this.#pending = pending;
    if (pending === undefined) {
      this.#diskless = true;
      this.abandon();
    }
    try {
      for await (const chunk of chunks) {
        this.#take(chunk);
        while (this.#tailBytes > MAX_TAIL_BYTES && !this.signal.aborted) await this.#wake.promise;
        if (this.signal.aborted) break;
      }
      // An empty response with a regular end is complete: it is relayed, and not stored.
      const whole = this.#check.complete || this.#check.fault !== undefined || this.#received === 0;
      this.#state = whole && !this.signal.aborted ? "complete" : "cut";
    } catch (error) {
      this.#state = "cut";
      this.#cause = error;
    }
    this.#decideSharing(this.#check.complete && !this.#diskless);
    this.#notify();
    while (this.#persisting) await this.#wake.promise;
    this.#deliver();
    this.#end();
    const reason = this.#state === "cut" ? "fetch: the answer broke off" : this.#check.verdict();
    return {
      storable: reason === undefined && !this.#diskless,
      reason: reason ?? (this.#diskless ? "no file" : undefined),
      diskError: this.#diskError,
      bytes: this.#received,
    };
  }

  /** Bytes that readers may have: whole packets, or everything once the framing is not understood. */
  get #readable(): number {
    return this.#check.fault === undefined ? this.#check.boundary : this.#received;
  }

  /** Bytes that readers may have and that are on disk, in whole slices: they are read from there. */
  get #sliced(): number {
    const onDisk = Math.min(this.#readable, this.#persisted);
    return onDisk - (onDisk % SLICE_BYTES);
  }

  get #tailBytes(): number {
    return this.#received - (this.#tail[0]?.offset ?? this.#received);
  }

  #take(chunk: Buffer): void {
    this.#tail.push({ offset: this.#received, bytes: chunk });
    this.#received += chunk.length;
    this.#check.push(chunk);
    if (!this.#diskless) this.#sums.push(chunk);
    if (this.#check.fault === undefined && this.#check.packStarted && !this.#diskless) {
      this.#decideSharing(true);
    }
    if (!this.#persisting && !this.#diskless) void this.#persist();
    this.#notify();
  }

  /** Writes the tail to the file until there is none. What arrives during one write goes with the next. */
  async #persist(): Promise<void> {
    this.#persisting = true;
    while (this.#pending !== undefined && this.#persisted < this.#received && !this.#diskless) {
      const batch = this.#tail.filter((chunk) => chunk.offset >= this.#persisted).map((chunk) => chunk.bytes);
      const end = this.#received;
      try {
        await this.#pending.write(batch, this.#persisted);
        this.#persisted = end;
        this.#dropTail();
      } catch (error) {
        // What is on disk already stays readable; the rest is kept for the readers that are here.
        this.#diskError = error;
        this.#diskless = true;
      }
      this.#notify();
    }
    this.#persisting = false;
    this.#notify();
  }

  #dropTail(): void {
    const done = this.#diskless ? Math.min(...[...this.#places].map((place) => place.offset)) : this.#sliced;
    const first = this.#tail.findIndex((chunk) => chunk.offset + chunk.bytes.length > done);
    if (first > 0) this.#tail.splice(0, first);
    else if (first < 0) this.#tail.length = 0;
  }

  async #read(place: Place): Promise<ResponsePart | undefined> {
    for (;;) {
      if (!this.#places.has(place)) throw this.#cut();
      if (place.offset < this.#sliced && this.#pending !== undefined) {
        const slice = await this.#slice(this.#pending, place.offset);
        place.offset += slice.bytes.length;
        return { kind: "stored", slice };
      }
      const readable = this.#readable;
      if (place.offset < readable) {
        const chunks = this.#fromTail(place.offset, readable);
        place.offset = readable;
        if (this.#diskless) {
          this.#dropTail();
          this.#notify();
        }
        return { kind: "live", chunks };
      }
      if (this.#state === "complete") {
        this.#delivered.resolve();
        return undefined;
      }
      if (this.#state === "cut") throw this.#cut(this.#cause);
      await this.#wake.promise;
    }
  }

  async #slice(pending: PendingResponse, offset: number): Promise<Slice> {
    try {
      return await pending.slice(offset, this.#sliced, this.#sums);
    } catch (error) {
      throw this.#cut(new StoredDataDamaged("the file of an answer cannot be read", error));
    }
  }

  #fromTail(offset: number, end: number): Buffer[] {
    // From the back: a reader that has caught up asks for what has just arrived.
    const first = this.#tail.findLastIndex((chunk) => chunk.offset <= offset);
    if (first < 0) throw this.#cut();
    return this.#tail
      .slice(first)
      .filter((chunk) => chunk.offset < end)
      .map((chunk) => chunk.bytes.subarray(Math.max(0, offset - chunk.offset), end - chunk.offset));
  }

  #cut(cause?: unknown): ResponseCut {
    return new ResponseCut(this.#check.inPackfile, cause);
  }

  #decideSharing(sharing: boolean): void {
    this.#sharing ??= sharing;
    this.#shared.resolve(this.#sharing);
  }

  #deliver(): void {
    if (this.#state !== "running" && this.#places.size === 0) this.#delivered.resolve();
  }

  #end(): void {
    const idle = this.#state !== "running" && !this.#persisting && this.#places.size === 0;
    if (!idle || !this.#closed) return;
    this.#ended.resolve();
  }

  /**
   * Wakes readers and writer, once per turn of the event loop, and less often if there are many: bytes that arrive until then
   * is then sent, and written to the file, with one call.
   */
  #notify(): void {
    if (this.#waking) return;
    this.#waking = true;
    const wake = (): void => {
      this.#waking = false;
      const { resolve } = this.#wake;
      this.#wake = Promise.withResolvers<void>();
      resolve();
    };
    if (this.#places.size > FEW_READERS && this.#state === "running") setTimeout(wake, GATHER_MS);
    else setImmediate(wake);
  }
}
