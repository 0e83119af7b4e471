import { createHash, type Hash } from "node:crypto";
import {
  encodeSideBand,
  FLUSH_PKT,
  MAX_SIDE_BAND_BYTES,
  type ObjectFormat,
  PKT_LENGTH_BYTES,
  SIDE_BAND,
} from "@devplat/git-protocol";
import type { PackSink } from "./pack-writer.ts";

/** Length and channel in front of a packet's data. */
const HEADER_BYTES = PKT_LENGTH_BYTES + 1;
const PACKET_BYTES = HEADER_BYTES + MAX_SIDE_BAND_BYTES;
/** Packets handed out at a time: 256 KiB keep a socket and a file busy (more costs memory, less costs calls). */
const PACKETS_PER_CHUNK = 4;
const CHUNK_BYTES = PACKET_BYTES * PACKETS_PER_CHUNK;

/**
 * Collects the bytes of a pack into side-band packets, in place: bytes are copied or read straight to where they stand
 * behind a packet's header. Hashes them on the way, one packet at a time.
 */
export class PacketBuffer implements PackSink {
  readonly #hash: Hash | undefined;
  #chunk: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #spare: Buffer | undefined;
  /** Where the current packet starts in the chunk, and where its next byte goes. */
  #packet = 0;
  #at = HEADER_BYTES;
  #ready: Buffer[] = [];
  /** Bytes of the pack so far, those in the current packet not counted. */
  #before = 0;
  #first = true;

  /** @param format to hash for a trailer; undefined when the bytes bring theirs */
  constructor(format: ObjectFormat | undefined) {
    this.#hash = format === undefined ? undefined : createHash(format);
  }

  /** Bytes of the pack so far. */
  get length(): number {
    return this.#before + this.#at - this.#packet - HEADER_BYTES;
  }

  /** Adds bytes of the pack. */
  append(bytes: Uint8Array, start: number, end: number): void {
    let from = start;
    while (from < end) {
      const count = Math.min(end - from, this.#room());
      this.#chunk.set(bytes.subarray(from, from + count), this.#at);
      from += count;
      this.#filled(count);
    }
  }

  /** Adds at most `length` bytes of the pack that `read` puts where they belong. @returns how many */
  fill(length: number, read: (target: Buffer) => void): number {
    const count = Math.min(length, this.#room());
    read(this.#chunk.subarray(this.#at, this.#at + count));
    this.#filled(count);
    return count;
  }

  /** Adds a text for the user. */
  progress(text: string): void {
    this.#endPacket();
    this.#handOut();
    this.#ready.push(encodeSideBand(SIDE_BAND.progress, Buffer.from(text)));
  }

  /** Adds the trailer. */
  appendTrailer(): void {
    // What is in the current packet is hashed when that ends.
    this.#endPacket();
    if (this.#hash === undefined) return;
    const trailer = this.#hash.copy().digest();
    this.append(trailer, 0, trailer.length);
  }

  /** Ends the answer. */
  end(): void {
    this.#endPacket();
    this.#handOut();
    this.#ready.push(FLUSH_PKT);
  }

  /** Takes a chunk that is complete; undefined when there is none. It is the caller's. */
  take(): Buffer | undefined {
    return this.#ready.shift();
  }

  /** Takes back the memory of a chunk that nobody reads any more. */
  recycle(chunk: Buffer): void {
    if (chunk.buffer.byteLength === CHUNK_BYTES) this.#spare ??= Buffer.from(chunk.buffer);
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
    this.#hash?.update(this.#chunk.subarray(start, this.#at));
    this.#chunk.write((length + HEADER_BYTES).toString(16).padStart(4, "0"), this.#packet, "latin1");
    this.#chunk[this.#packet + PKT_LENGTH_BYTES] = SIDE_BAND.pack;
    this.#before += length;
    this.#packet = this.#at;
    this.#at += HEADER_BYTES;
    // The first packet goes out alone: the client's wait ends with it.
    if (this.#first || this.#packet + PACKET_BYTES > this.#chunk.length) this.#handOut();
    this.#first = false;
  }

  #handOut(): void {
    if (this.#packet === 0) return;
    this.#ready.push(this.#chunk.subarray(0, this.#packet));
    this.#chunk = this.#spare ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
    this.#spare = undefined;
    this.#packet = 0;
    this.#at = HEADER_BYTES;
  }
}
