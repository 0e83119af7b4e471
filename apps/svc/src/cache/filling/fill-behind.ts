import type { FillCandidate } from "./fill-starts.ts";
import type { CoalescedFetch, FetchReader } from "../coalescing/coalesced-fetch.ts";

/** A response that is complete and stored. */
export interface CompleteResponse {
  chunks(): AsyncIterable<Buffer>;
}

/**
 * Where the pack of a fill comes from: a stored response, or a transfer. `isHere`: all of it has arrived. Undefined: a
 * fetch of its own.
 */
export type FillSource =
  | { readonly kind: "file"; readonly file: CompleteResponse; readonly isHere: true }
  | { readonly kind: "transfer"; readonly reader: FetchReader; readonly isHere: boolean }
  | undefined;

export interface FillBehindParts {
  readonly transfer: Pick<CoalescedFetch, "complete" | "delivered" | "joinable" | "join">;
  readonly selfContained: boolean;
  /** Fills the mirror. Never called a second time. Never rejects. */
  readonly fill: (source: FillSource) => Promise<void>;
  /** Called when the fill can no longer start. */
  readonly over: () => void;
}

/**
 * The fill of a mirror behind one transfer. It starts when the first client has all of the complete transfer, or
 * earlier when it is told to.
 */
export class FillBehind implements FillCandidate {
  readonly #parts: FillBehindParts;
  readonly #done = Promise.withResolvers<void>();
  #started = false;
  #file: CompleteResponse | undefined;

  constructor(parts: FillBehindParts) {
    this.#parts = parts;
  }

  get selfContained(): boolean {
    return this.#parts.selfContained;
  }

  get started(): boolean {
    return this.#started;
  }

  /** Resolves when the fill has ended, or can no longer start. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Starts now, even while the transfer is running. */
  start(): void {
    const { transfer, selfContained } = this.#parts;
    if (this.#started) return;
    if (!selfContained) void this.#run(undefined);
    else if (this.#file !== undefined) void this.#run({ kind: "file", file: this.#file, isHere: true });
    else if (transfer.joinable) {
      void this.#run({ kind: "transfer", reader: transfer.join(), isHere: transfer.complete });
    }
  }

  /**
   * The transfer is complete: the fill starts as soon as one client has all of it.
   *
   * @param file its stored response; undefined: it was not stored
   */
  async complete(file: CompleteResponse | undefined): Promise<void> {
    this.#file = file;
    await this.#parts.transfer.delivered;
    if (this.#started) return;
    const isUseful = file !== undefined && this.selfContained;
    await this.#run(isUseful ? { kind: "file", file, isHere: true } : undefined);
  }

  /** Prevents a start, because the transfer broke off or its response must not be stored. */
  cancel(): void {
    if (!this.#started) this.#end();
    this.#started = true;
  }

  async #run(source: FillSource): Promise<void> {
    this.#started = true;
    try {
      await this.#parts.fill(source);
    } finally {
      this.#end();
    }
  }

  #end(): void {
    this.#parts.over();
    this.#done.resolve();
  }
}
