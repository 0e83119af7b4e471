import type { ResponseChunks } from "@devplat/git-mirror";
import type { ResponseCheck } from "../responses/response-check.ts";
import { StoredDataDamaged, type FileSums } from "../responses/block-sums.ts";
import type { PendingResponse } from "../responses/response-store.ts";
import type { Slice } from "../responses/slices.ts";
import { Notifier } from "./notifier.ts";
import { ResponseBuffer, type LentChunks } from "./response-buffer.ts";

/** Maximum bytes that are not on disk yet. Then the code host is read only as fast as the disk writes. */
const MAX_TAIL_BYTES = 8 * 1024 * 1024;
/** With more readers than this, bytes of a few milliseconds are sent to each of them with one call. */
const FEW_READERS = 8;

/** The response broke off, or a reader's part of the file cannot be read. */
export class ResponseCut extends Error {
  /** Whether an error packet now belongs on side-band 3. */
  readonly inPackfile: boolean;
  /** Whether the fault is in this service, not in the code host. */
  readonly isOwn: boolean;

  constructor(inPackfile: boolean, cause?: unknown) {
    const isOwn = cause instanceof StoredDataDamaged;
    super(isOwn ? "a response from stored data broke off" : "the code host's response broke off", { cause });
    this.name = "ResponseCut";
    this.inPackfile = inPackfile;
    this.isOwn = isOwn;
  }
}

/**
 * Bytes for a reader: a slice of the file, which the reader gives back, or the chunks as they arrived. The chunks are the
 * reader's until its next read, so all of their bytes must be sent before.
 */
export type ResponsePart =
  | { readonly kind: "stored"; readonly slice: Slice }
  | { readonly kind: "live"; readonly chunks: readonly Buffer[] };

/** One client's view of a coalesced fetch. Leaving twice does nothing. */
export interface FetchReader {
  /** The next bytes, or undefined at the end. @throws ResponseCut */
  read(): Promise<ResponsePart | undefined>;
  leave(): void;
}

/** Result of a coalesced fetch. */
export interface FetchOutcome {
  /** The whole response is in the file and may be stored. */
  readonly storable: boolean;
  /** Why not; undefined if it is storable. */
  readonly reason: string | undefined;
  /** The disk failed on the way; the readers did not notice. */
  readonly diskError: unknown;
  readonly bytes: number;
}

interface ReaderPosition {
  /** How far the reader has come, in bytes. */
  offset: number;
  /** Chunks of its last read. */
  lent: LentChunks | undefined;
}

/**
 * One upstream response for all clients that sent the same request at the same time. It is written to the store as fast
 * as it arrives. Each reader follows at its own speed: from the store, or with the chunks as they arrive if it has caught
 * up. Readers get whole packets only, so that an error packet can follow wherever the response breaks.
 *
 * If the disk fails, or nothing is written, the chunks are kept in memory until all readers have them, and the slowest
 * reader sets the pace. No reader can join then.
 *
 * It has more than 20 members, because sharing, reading and ending depend on one state: each of them can end the others.
 */
export class CoalescedFetch {
  readonly #check: ResponseCheck;
  readonly #controller = new AbortController();
  readonly #shared = Promise.withResolvers<boolean>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #delivered = Promise.withResolvers<void>();
  #sharing: boolean | undefined;
  readonly #positions = new Set<ReaderPosition>();
  readonly #progress = new Notifier(() => this.#positions.size > FEW_READERS && this.#state === "running");
  readonly #buffer = new ResponseBuffer(this.#progress);
  #state: "running" | "complete" | "cut" = "running";
  #closed = false;
  #cause: unknown;

  constructor(check: ResponseCheck) {
    this.#check = check;
  }

  /** Aborts when no reader is left. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /**
   * True once other requests may read too: a byte of the pack came, or the whole response. False if the response is only
   * for the request that started it: a refusal, an error before the pack, no file.
   */
  get shared(): Promise<boolean> {
    return this.#shared.promise;
  }

  /** Whether a new reader would find the response from its beginning on. */
  get joinable(): boolean {
    if (this.#closed || this.#buffer.diskless || this.#state === "cut" || this.signal.aborted) return false;
    return this.#sharing !== false && this.#check.fault === undefined;
  }

  /** Ends joining: no other request finds the fetch after this. */
  close(): void {
    this.#closed = true;
    this.#end();
  }

  /**
   * Resolves when the response ended, the fetch is closed, and the last reader left. Do not close the pending file before
   * this: a late reader could read from a descriptor that belongs to another file.
   */
  get closed(): Promise<void> {
    return this.#ended.promise;
  }

  /** Whether the response has arrived to its end. */
  get complete(): boolean {
    return this.#state === "complete";
  }

  /** Resolves when the response ended and a reader has had all of it, or no reader is left. */
  get delivered(): Promise<void> {
    return this.#delivered.promise;
  }

  /** Checksums of all that arrived so far. */
  get sums(): FileSums {
    return this.#buffer.sums;
  }

  /** First error of the disk; undefined: none yet. */
  get diskError(): unknown {
    return this.#buffer.diskError;
  }

  /** Marks the response as not shared. Requests that wait to join continue without it. */
  abandon(): void {
    this.#decideSharing(false);
  }

  join(): FetchReader {
    const position: ReaderPosition = { offset: 0, lent: undefined };
    this.#positions.add(position);
    return {
      read: () => this.#read(position),
      leave: () => {
        if (!this.#positions.delete(position)) return;
        this.#dropRead();
        if (this.#positions.size === 0 && this.#state === "running") this.#controller.abort();
        this.#deliver();
        this.#end();
        this.#progress.notify();
      },
    };
  }

  /**
   * Drains the response; resolves when it ended and all that can be on disk is. Never rejects.
   *
   * @param pending file that it is written to; undefined: none
   */
  async run(chunks: ResponseChunks, pending: PendingResponse | undefined): Promise<FetchOutcome> {
    const buffer = this.#buffer;
    buffer.open(pending, chunks.recycle);
    if (pending === undefined) this.abandon();
    try {
      for await (const chunk of chunks) {
        this.#take(chunk);
        while (buffer.held > MAX_TAIL_BYTES && !this.signal.aborted) await this.#progress.wait();
        if (this.signal.aborted) break;
      }
      // An empty response with a regular end is complete: it is relayed, and not stored.
      const whole = this.#check.complete || this.#check.fault !== undefined || buffer.received === 0;
      this.#state = whole && !this.signal.aborted ? "complete" : "cut";
    } catch (error) {
      this.#state = "cut";
      this.#cause = error;
    }
    this.#decideSharing(this.#check.complete && !buffer.diskless);
    this.#progress.notify();
    while (buffer.persisting) await this.#progress.wait();
    this.#deliver();
    this.#end();
    const reason = this.#state === "cut" ? "fetch: the response broke off" : this.#check.verdict();
    return {
      storable: reason === undefined && !buffer.diskless,
      reason: reason ?? (buffer.diskless ? "no file" : undefined),
      diskError: buffer.diskError,
      bytes: buffer.received,
    };
  }

  /** Bytes that readers may get: whole packets, or all bytes if the framing is unknown. */
  get #readable(): number {
    return this.#check.fault === undefined ? this.#check.boundary : this.#buffer.received;
  }

  #take(chunk: Buffer): void {
    this.#buffer.push(chunk);
    this.#check.push(chunk);
    if (this.#check.fault === undefined && this.#check.packStarted && !this.#buffer.diskless) {
      this.#decideSharing(true);
    }
    void this.#buffer.persist(() => this.#dropRead());
    this.#progress.notify();
  }

  /** Drops bytes from memory that every reader got, or can read from the disk. */
  #dropRead(): void {
    const slowest = Math.min(...[...this.#positions].map((position) => position.offset));
    this.#buffer.drop(this.#buffer.diskless ? slowest : this.#buffer.stored(this.#readable));
  }

  async #read(position: ReaderPosition): Promise<ResponsePart | undefined> {
    position.lent?.giveBack();
    position.lent = undefined;
    for (;;) {
      if (!this.#positions.has(position)) throw this.#cut();
      const readable = this.#readable;
      if (position.offset < this.#buffer.stored(readable)) {
        const slice = await this.#slice(position.offset, readable);
        position.offset += slice.bytes.length;
        return { kind: "stored", slice };
      }
      if (position.offset < readable) {
        const lent = this.#buffer.lend(position.offset, readable);
        if (lent === undefined) throw this.#cut();
        position.offset = readable;
        position.lent = lent;
        if (this.#buffer.diskless) {
          this.#dropRead();
          this.#progress.notify();
        }
        return { kind: "live", chunks: lent.chunks };
      }
      if (this.#state === "complete") {
        this.#delivered.resolve();
        return undefined;
      }
      if (this.#state === "cut") throw this.#cut(this.#cause);
      await this.#progress.wait();
    }
  }

  async #slice(offset: number, readable: number): Promise<Slice> {
    try {
      return await this.#buffer.slice(offset, readable);
    } catch (error) {
      throw this.#cut(new StoredDataDamaged("the file of a response cannot be read", error));
    }
  }

  #cut(cause?: unknown): ResponseCut {
    return new ResponseCut(this.#check.inPackfile, cause);
  }

  #decideSharing(sharing: boolean): void {
    this.#sharing ??= sharing;
    this.#shared.resolve(this.#sharing);
  }

  #deliver(): void {
    if (this.#state !== "running" && this.#positions.size === 0) this.#delivered.resolve();
  }

  #end(): void {
    const idle = this.#state !== "running" && !this.#buffer.persisting && this.#positions.size === 0;
    if (!idle || !this.#closed) return;
    this.#buffer.drop(this.#buffer.received);
    this.#ended.resolve();
  }
}
