import { FetchResponseWalker, ProtocolError } from "@devplat/git-protocol";
import type { FetchReader } from "../cache/coalescing/coalesced-fetch.ts";
import type { StoredResponse } from "../cache/responses/response-store.ts";
import type { Slice } from "../cache/responses/slices.ts";
import type { ClientSink } from "./client-sink.ts";

/**
 * Sends one response to a client in whole packets, so that an error packet can follow if sending ends early. A slice can
 * end within a packet. The beginning of that packet waits for the next slice.
 */
export class ResponseSender {
  readonly #sink: ClientSink;
  /** Made when packets must be followed. */
  #walker: FetchResponseWalker | undefined;
  /** Bytes that the walker has seen. */
  #seen = 0;
  /** The framing cannot be followed: all bytes go out as they come. */
  #opaque = false;
  /** The beginning of a packet whose end has not come: less than 64 KiB. */
  #tail: Buffer = Buffer.alloc(0);
  #sending: Promise<void> = Promise.resolve();

  constructor(sink: ClientSink) {
    this.#sink = sink;
  }

  /** Whether an error now belongs on side-band 3, not in an `ERR` packet. */
  get inPackfile(): boolean {
    return this.#walker?.inPackfile === true;
  }

  /**
   * Sends a stored response, one slice being read while the one before is on its way.
   *
   * @returns the bytes sent
   * @throws what reading threw, once all before it is sent; the sink's error
   */
  async file(file: StoredResponse): Promise<number> {
    const first = await file.slice(0);
    // Nothing can fail after it: its packets need not be followed.
    if (first.bytes.length === file.size) {
      await this.#write(first, [first.bytes]);
      return file.size;
    }
    let sent = first.bytes.length;
    await this.#send(first);
    while (sent < file.size) {
      if (file.crowded()) await this.#sending;
      let slice: Slice;
      try {
        slice = await file.slice(sent);
      } catch (error) {
        await this.#sending;
        throw error;
      }
      sent += slice.bytes.length;
      await this.#send(slice);
    }
    await this.#sending;
    return sent;
  }

  /**
   * Sends the response of a coalesced fetch at the client's own speed.
   *
   * @param begin called once, before the first byte: it writes the head
   * @returns the bytes sent
   * @throws ResponseCut, once all before it is sent; the sink's error
   */
  async coalesced(reader: FetchReader, begin: () => void): Promise<number> {
    let sent = 0;
    let part = await reader.read();
    begin();
    while (part !== undefined) {
      if (part.kind === "stored") {
        sent += part.slice.bytes.length;
        await this.#send(part.slice);
      } else {
        const { chunks } = part;
        sent += chunks.reduce((sum, chunk) => sum + chunk.length, 0);
        for (const chunk of chunks) this.#follow(chunk);
        await this.#sending;
        // Chunks from memory are whole packets.
        await this.#sink.writeAll(this.#withTail(chunks));
      }
      try {
        part = await reader.read();
      } catch (error) {
        await this.#sending;
        throw error;
      }
    }
    await this.#sending;
    return sent;
  }

  /** Begins to send once the slice before is sent. @throws what sending that one failed with */
  async #send(slice: Slice): Promise<void> {
    try {
      await this.#sending;
    } catch (error) {
      slice.release();
      throw error;
    }
    const { bytes } = slice;
    const end = bytes.length - this.#follow(bytes);
    if (end <= 0) this.#tail = Buffer.concat([this.#tail, bytes]);
    const whole = end <= 0 ? [] : this.#withTail([bytes.subarray(0, end)]);
    // A copy: the slice's memory is another's as soon as it is sent.
    if (end > 0) this.#tail = Buffer.from(bytes.subarray(end));
    this.#sending = this.#write(slice, whole);
    // The sender of the next slice gets the failure.
    this.#sending.catch(() => undefined);
  }

  #withTail(chunks: readonly Buffer[]): readonly Buffer[] {
    if (this.#tail.length === 0) return chunks;
    const all = [this.#tail, ...chunks];
    this.#tail = Buffer.alloc(0);
    return all;
  }

  /** @returns how many of the bytes belong to a packet whose end has not come */
  #follow(bytes: Buffer): number {
    this.#seen += bytes.length;
    if (this.#opaque) return 0;
    const walker = (this.#walker ??= new FetchResponseWalker());
    try {
      // The walker keeps views of the lines before the pack; those of the pack it only counts.
      walker.push(walker.inPackfile ? bytes : Buffer.from(bytes));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#opaque = true;
      return 0;
    }
    return this.#seen - walker.boundary;
  }

  async #write(slice: Slice, chunks: readonly Buffer[]): Promise<void> {
    try {
      const [only] = chunks;
      if (chunks.length > 1) await this.#sink.writeAll(chunks);
      else if (only !== undefined) await this.#sink.writeThrough(only);
    } catch (error) {
      slice.abandon();
      throw error;
    }
    slice.release();
  }
}
