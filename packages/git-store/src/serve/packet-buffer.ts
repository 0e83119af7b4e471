import { createHash, type Hash } from "node:crypto";
import {
  encodeSideBandProgress,
  FLUSH_PKT,
  MAX_SIDE_BAND_BYTES,
  type ObjectFormat,
  PKT_LENGTH_BYTES,
  SIDE_BAND,
} from "@devplat/git-protocol";
import { CHUNK_BYTES, takeChunk } from "./chunk-pool.ts";
import type { PackSink } from "./pack-writer.ts";

/** Bytes of length and channel before the data of a packet. */
const HEADER_BYTES = PKT_LENGTH_BYTES + 1;
const PACKET_BYTES = HEADER_BYTES + MAX_SIDE_BAND_BYTES;
/** Shorter pieces are copied byte by byte: a view for each would cost more, and is garbage. */
const SHORT_BYTES = 48;

/**
 * Collects the bytes of a pack in side-band packets. Bytes are copied or read directly to their place after a packet's
 * header, and hashed one packet at a time.
 */
export class PacketBuffer implements PackSink {
  readonly #hash: Hash | undefined;
  /** Undefined until the next byte comes. */
  #memory: Buffer | undefined;
  /** Offsets in the chunk: start of the current packet, and its next byte. */
  #packet = 0;
  #at = HEADER_BYTES;
  #ready: Buffer[] = [];
  /** Bytes of the pack so far, without the current packet. */
  #before = 0;
  #first = true;

  /** @param format hash of the trailer; undefined when the bytes include the trailer */
  constructor(format: ObjectFormat | undefined) {
    this.#hash = format === undefined ? undefined : createHash(format);
  }

  /** Bytes of the pack so far. */
  get length(): number {
    return this.#before + this.#at - this.#packet - HEADER_BYTES;
  }

  /** Adds bytes of the pack. */
  append(bytes: Uint8Array, start: number, end: number): void {
    if (start >= end) return;
    let from = start;
    if (end - start < SHORT_BYTES && end - start < this.#room()) {
      const chunk = this.#chunk();
      while (from < end) chunk[this.#at++] = bytes[from++]!;
      return;
    }
    while (from < end) {
      const count = Math.min(end - from, this.#room());
      this.#chunk().set(bytes.subarray(from, from + count), this.#at);
      from += count;
      this.#filled(count);
    }
  }

  /** Lets `read` add at most `length` bytes of the pack in place. @returns the number of bytes */
  fill(length: number, read: (target: Buffer) => void): number {
    const count = Math.min(length, this.#room());
    read(this.#chunk().subarray(this.#at, this.#at + count));
    this.#filled(count);
    return count;
  }

  /** Adds a progress message for the user. */
  progress(text: string): void {
    this.#endPacket();
    this.#handOut();
    this.#ready.push(encodeSideBandProgress(text));
  }

  /** Adds the trailer. */
  appendTrailer(): void {
    // The current packet is hashed when it ends.
    this.#endPacket();
    if (this.#hash === undefined) return;
    const trailer = this.#hash.copy().digest();
    this.append(trailer, 0, trailer.length);
  }

  /** Ends the response. */
  end(): void {
    this.#endPacket();
    this.#handOut();
    this.#ready.push(FLUSH_PKT);
  }

  /** Removes a complete chunk, which the caller then owns; undefined when there is none. */
  take(): Buffer | undefined {
    return this.#ready.shift();
  }

  #chunk(): Buffer {
    return (this.#memory ??= takeChunk());
  }

  #room(): number {
    return this.#packet + PACKET_BYTES - this.#at;
  }

  #filled(count: number): void {
    this.#at += count;
    if (this.#room() === 0) this.#endPacket();
  }

  #endPacket(): void {
    const start = this.#packet + HEADER_BYTES;
    const length = this.#at - start;
    if (length === 0) return;
    const chunk = this.#chunk();
    this.#hash?.update(chunk.subarray(start, this.#at));
    chunk.write((length + HEADER_BYTES).toString(16).padStart(4, "0"), this.#packet, "latin1");
    chunk[this.#packet + PKT_LENGTH_BYTES] = SIDE_BAND.pack;
    this.#before += length;
    this.#packet = this.#at;
    this.#at += HEADER_BYTES;
    // The first packet is a chunk of its own, so that the client gets it early.
    if (this.#first || this.#packet + PACKET_BYTES > CHUNK_BYTES) this.#handOut();
    this.#first = false;
  }

  #handOut(): void {
    if (this.#packet === 0) return;
    this.#ready.push(this.#chunk().subarray(0, this.#packet));
    this.#memory = undefined;
    this.#packet = 0;
    this.#at = HEADER_BYTES;
  }
}
