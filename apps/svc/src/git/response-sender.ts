import { encodePktLine, FetchResponseWalker, ProtocolError } from "@devplat/git-protocol";
import type { FetchReader } from "../cache/coalescing/coalesced-fetch.ts";
import { StoredDataDamaged } from "../cache/responses/block-sums.ts";
import type { StoredResponse } from "../cache/responses/response-store.ts";
import type { Slice } from "../cache/responses/slices.ts";
import type { FileSender } from "../http/send-file/file-sender.ts";
import type { Late } from "../late.ts";
import { bytesToPacketEnd } from "./packet-end.ts";
import type { ClientSink } from "./client-sink.ts";

/** Bytes at the end that are read and compared like a slice. */
const CHECKED_END_BYTES = 128 * 1024;
/** Bytes that are copied together while the lines before the pack are followed. */
const LINES_BYTES = 2048;
/** First line of a response that has nothing but a pack. */
const PACK_LINE = encodePktLine("packfile\n");
/** Smaller responses are sent from memory for no more CPU. */
const SEND_FILE_BYTES = 8 * 1024 * 1024;

/**
 * Sends one response to a client in whole packets, so that an error packet can follow if sending ends early. A slice can
 * end within a packet. The beginning of that packet waits for the next slice.
 */
export class ResponseSender {
  readonly #sink: ClientSink;
  readonly #files: Late<FileSender> | undefined;
  /** Made when packets must be followed. */
  #walker: FetchResponseWalker | undefined;
  /** Bytes that the walker has seen. */
  #seen = 0;
  /** The framing cannot be followed: all bytes go out as they come. */
  #opaque = false;
  /** The beginning of a packet whose end has not come: less than 64 KiB. */
  #tail: Buffer = Buffer.alloc(0);
  #sending: Promise<void> = Promise.resolve();

  /** @param files sends files that the kernel has in memory; undefined: each byte is read */
  constructor(sink: ClientSink, files?: Late<FileSender>) {
    this.#sink = sink;
    this.#files = files;
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
    const begin = this.#isForSendFile(file) ? beginningOf(first) : first;
    let sent = begin.bytes.length;
    await this.#send(begin);
    if (await this.#sendRest(file, sent)) return file.size;
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

  #isForSendFile({ soundFile, size }: StoredResponse): boolean {
    return this.#files !== undefined && soundFile !== undefined && size >= SEND_FILE_BYTES;
  }

  /**
   * Sends what follows the first bytes with sendfile(2). The end of the response is compared with its checksums, and waits
   * until it is known that the file is still sound, so that no client takes a damaged response for a whole one.
   *
   * @returns false: nothing of it was sent
   * @throws as {@link file}
   */
  async #sendRest(file: StoredResponse, sent: number): Promise<boolean> {
    const { soundFile, size } = file;
    if (this.#files === undefined || soundFile === undefined || !this.#isForSendFile(file)) return false;
    // Where it cannot be loaded, because Node has no way to call the system, all is read.
    const files = await this.#files.get().catch(() => undefined);
    if (files === undefined) return false;
    await this.#sending;
    if (!this.#sink.canSendFile(files) || !(await files.bringIntoMemory(soundFile, size))) return false;
    const offset = sent - this.#tail.length;
    const length = size - CHECKED_END_BYTES - offset;
    const result = await this.#sink.sendFile(files, { fd: soundFile.descriptor, offset, length });
    if (result.end === "nothing") return false;
    this.#tail = Buffer.alloc(0);
    let at = offset + result.sent;
    try {
      if (result.end === "failed" || !(await soundFile.isStillSound(result.end === "reread"))) {
        throw new StoredDataDamaged("a stored response changed while it was sent");
      }
      for (let slice: Slice; at < size; at += slice.bytes.length) {
        slice = await file.slice(at);
        await this.#write(slice, [slice.bytes]);
      }
    } catch (error) {
      if (error instanceof StoredDataDamaged) await this.#fillPacket(soundFile.descriptor, offset, at);
      throw error;
    }
    return true;
  }

  /** Ends the packet that is on its way, with zeros, so that an error packet can follow. @throws the sink's error */
  async #fillPacket(descriptor: number, boundary: number, sent: number): Promise<void> {
    const missing = await bytesToPacketEnd(descriptor, boundary, sent);
    if (missing === undefined) this.#sink.response.destroy();
    else if (missing > 0) await this.#sink.writeThrough(Buffer.alloc(missing));
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
      // The walker keeps views of the lines before the pack; bytes of the pack it only counts. A copy of the whole slice
      // would make V8 collect garbage every few requests.
      let at = 0;
      for (; at < bytes.length && !walker.inPackfile; at += LINES_BYTES) {
        walker.push(Buffer.from(bytes.subarray(at, at + LINES_BYTES)));
      }
      if (at < bytes.length) walker.push(bytes.subarray(at));
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

/**
 * The line before the pack, if it is the only one, with the first bytes of the pack: the rest is left to sendfile(2). Otherwise
 * the whole slice.
 */
function beginningOf(slice: Slice): Slice {
  if (!slice.bytes.subarray(0, PACK_LINE.length).equals(PACK_LINE)) return slice;
  return {
    bytes: slice.bytes.subarray(0, LINES_BYTES),
    release: () => slice.release(),
    abandon: () => slice.abandon(),
  };
}
