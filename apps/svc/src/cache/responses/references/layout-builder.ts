import { MAX_SIDE_BAND_BYTES, PKT_LENGTH_BYTES, SIDE_BAND } from "@devplat/git-protocol";
import { PACKET_HEADER_BYTES, PacketLayout, type LayoutPart } from "./packet-layout.ts";

const PACKFILE_LINE = Buffer.from("packfile\n");
const LENGTH = /^[0-9a-f]{4}$/;

/** The layout of a response, and the last bytes of its pack. */
export interface BuiltLayout {
  readonly layout: PacketLayout;
  readonly tail: Buffer;
}

/** Makes the layout of a framed response from its bytes. */
export class LayoutBuilder {
  readonly #tailBytes: number;
  readonly #parts: LayoutPart[] = [];
  /** Literal bytes that are not a part yet. */
  #literals: Buffer[] = [];
  #run = { payload: 0, packets: 0 };
  /** Bytes of a packet whose end has not come: of the pack, only its header. */
  #carry: Buffer = Buffer.alloc(0);
  /** Bytes of the pack that are missing to the end of their packet. */
  #missing = 0;
  #inPack = false;
  #ended = false;
  #faulty = false;
  #tail: Buffer = Buffer.alloc(0);

  /** @param tailBytes how many of the last bytes of the pack to keep */
  constructor(tailBytes: number) {
    this.#tailBytes = tailBytes;
  }

  push(chunk: Buffer): void {
    let bytes = this.#carry.length === 0 ? chunk : Buffer.concat([this.#carry, chunk]);
    this.#carry = Buffer.alloc(0);
    while (bytes.length > 0 && !this.#faulty) {
      const taken = this.#missing > 0 ? this.#packBytes(bytes) : this.#packet(bytes);
      if (taken === 0) {
        this.#carry = Buffer.from(bytes);
        return;
      }
      bytes = bytes.subarray(taken);
    }
  }

  /** @returns undefined if these are not the bytes of one complete response with a pack */
  finish(): BuiltLayout | undefined {
    if (this.#faulty || !this.#ended || this.#carry.length > 0) return undefined;
    this.#endRun();
    this.#endLiterals();
    return { layout: new PacketLayout(this.#parts), tail: this.#tail };
  }

  /** Takes bytes of the packet that has begun. @returns their number */
  #packBytes(bytes: Buffer): number {
    const count = Math.min(bytes.length, this.#missing);
    this.#missing -= count;
    const all = Buffer.concat([this.#tail, bytes.subarray(Math.max(0, count - this.#tailBytes), count)]);
    this.#tail = all.subarray(Math.max(0, all.length - this.#tailBytes));
    return count;
  }

  /** Takes a packet, or the header of a packet of the pack. @returns the number of bytes; 0: more are needed */
  #packet(bytes: Buffer): number {
    if (bytes.length < PKT_LENGTH_BYTES) return 0;
    const text = bytes.toString("latin1", 0, PKT_LENGTH_BYTES);
    const length = Math.max(PKT_LENGTH_BYTES, Number.parseInt(text, 16));
    if (this.#ended || !LENGTH.test(text) || length > MAX_SIDE_BAND_BYTES + PACKET_HEADER_BYTES) {
      this.#faulty = true;
      return bytes.length;
    }
    if (this.#inPack && length > PACKET_HEADER_BYTES) {
      if (bytes.length < PACKET_HEADER_BYTES) return 0;
      if (bytes[PKT_LENGTH_BYTES] === SIDE_BAND.pack) {
        this.#beginPacket(length - PACKET_HEADER_BYTES);
        return PACKET_HEADER_BYTES;
      }
    }
    if (bytes.length < length) return 0;
    const packet = bytes.subarray(0, length);
    this.#endRun();
    this.#literals.push(Buffer.from(packet));
    if (this.#inPack) this.#ended = length === PKT_LENGTH_BYTES;
    else this.#inPack = packet.subarray(PKT_LENGTH_BYTES).equals(PACKFILE_LINE);
    return length;
  }

  #beginPacket(payload: number): void {
    this.#endLiterals();
    if (this.#run.payload !== payload) this.#endRun();
    this.#run = { payload, packets: this.#run.packets + 1 };
    this.#missing = payload;
  }

  #endRun(): void {
    if (this.#run.packets > 0) this.#parts.push(this.#run);
    this.#run = { payload: 0, packets: 0 };
  }

  #endLiterals(): void {
    if (this.#literals.length > 0) this.#parts.push({ literal: Buffer.concat(this.#literals) });
    this.#literals = [];
  }
}
