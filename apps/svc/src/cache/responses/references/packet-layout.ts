import { MAX_SIDE_BAND_BYTES, PKT_LENGTH_BYTES, SIDE_BAND } from "@devplat/git-protocol";

/** Bytes of length and channel before the data of a side-band packet. */
export const PACKET_HEADER_BYTES = PKT_LENGTH_BYTES + 1;

/** An object and two offsets. */
const PART_MEMORY_BYTES = 64;

/**
 * One part of a framed response: bytes that are not of the pack, or `packets` packets on the pack's channel, each with
 * `payload` bytes of the pack.
 */
export type LayoutPart =
  | { readonly literal: Buffer }
  | { readonly payload: number; readonly packets: number };

/** Bytes of the pack that a piece of a response needs, and their places in it. */
export interface PackBytes {
  /** Offset in the pack. */
  readonly offset: number;
  /** Successive bytes of the pack belong into these, one after the other. */
  readonly targets: readonly Buffer[];
}

/**
 * Where each byte of a framed response comes from: the pack, the header of a packet, or bytes of its own, such as
 * the lines before the pack and progress messages.
 *
 * Encoded, a part is a number and more: an even one is twice the length of the literal that follows, an odd one is twice
 * the payload of a packet plus one, and the number of packets follows. Numbers are little-endian groups of seven bits.
 */
export class PacketLayout {
  /** Bytes of the response. */
  readonly size: number;
  /** Bytes of the pack. */
  readonly packBytes: number;
  readonly #parts: readonly LayoutPart[];
  /** The offset of each part in the response, and that of its first pack byte in the pack. */
  readonly #starts: Float64Array;
  readonly #packStarts: Float64Array;

  constructor(parts: readonly LayoutPart[]) {
    this.#parts = parts;
    this.#starts = new Float64Array(parts.length);
    this.#packStarts = new Float64Array(parts.length);
    let size = 0;
    let packBytes = 0;
    for (const [index, part] of parts.entries()) {
      this.#starts[index] = size;
      this.#packStarts[index] = packBytes;
      if ("literal" in part) size += part.literal.length;
      else {
        size += (part.payload + PACKET_HEADER_BYTES) * part.packets;
        packBytes += part.payload * part.packets;
      }
    }
    this.size = size;
    this.packBytes = packBytes;
  }

  /** Bytes of memory, about. */
  get memoryBytes(): number {
    return this.#parts.length * PART_MEMORY_BYTES;
  }

  /** @returns undefined if it is malformed */
  static decode(bytes: Buffer): PacketLayout | undefined {
    const parts: LayoutPart[] = [];
    const numbers = new NumberReader(bytes);
    while (numbers.at < bytes.length) {
      const tag = numbers.next();
      if (tag === undefined) return undefined;
      const value = Math.floor(tag / 2);
      if (tag % 2 === 0) {
        const end = numbers.at + value;
        if (value === 0 || end > bytes.length) return undefined;
        parts.push({ literal: bytes.subarray(numbers.at, end) });
        numbers.at = end;
      } else {
        const packets = numbers.next();
        if (packets === undefined || packets === 0 || value === 0 || value > MAX_SIDE_BAND_BYTES)
          return undefined;
        parts.push({ payload: value, packets });
      }
    }
    const layout = new PacketLayout(parts);
    return Number.isSafeInteger(layout.size) ? layout : undefined;
  }

  encode(): Buffer {
    return Buffer.concat(
      this.#parts.map((part) =>
        "literal" in part
          ? Buffer.concat([encodeNumber(part.literal.length * 2), part.literal])
          : Buffer.concat([encodeNumber(part.payload * 2 + 1), encodeNumber(part.packets)]),
      ),
    );
  }

  /**
   * Writes the bytes of the response that are not of the pack.
   *
   * @param target for the bytes from `position` on; it must not reach beyond the end of the response
   * @returns the rest: bytes of the pack
   */
  fill(target: Buffer, position: number): PackBytes {
    const targets: Buffer[] = [];
    let offset: number | undefined;
    let index = this.#partAt(position);
    for (let at = 0; at < target.length; index++) {
      const part = this.#parts[index];
      if (part === undefined) throw new RangeError("beyond the end of the response");
      let within = position + at - this.#starts[index]!;
      if ("literal" in part) {
        at += part.literal.copy(target, at, within);
        continue;
      }
      const packet = part.payload + PACKET_HEADER_BYTES;
      const header = headerOf(packet);
      for (const end = packet * part.packets; within < end && at < target.length;) {
        const inPacket = within % packet;
        const copied = inPacket < header.length ? header.copy(target, at, inPacket) : 0;
        const inPayload = inPacket + copied - PACKET_HEADER_BYTES;
        const bytes = Math.min(part.payload - inPayload, target.length - at - copied);
        if (inPayload >= 0 && bytes > 0) {
          offset ??= this.#packStarts[index]! + Math.floor(within / packet) * part.payload + inPayload;
          targets.push(target.subarray(at + copied, at + copied + bytes));
          at += bytes;
          within += bytes;
        }
        at += copied;
        within += copied;
      }
    }
    return { offset: offset ?? 0, targets };
  }

  /** Index of the part that has the byte at this offset. */
  #partAt(position: number): number {
    let low = 0;
    for (let high = this.#starts.length - 1; low < high;) {
      const middle = (low + high + 1) >>> 1;
      if (this.#starts[middle]! <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function headerOf(packetBytes: number): Buffer {
  const header = Buffer.alloc(PACKET_HEADER_BYTES);
  header.write(packetBytes.toString(16).padStart(PKT_LENGTH_BYTES, "0"), "latin1");
  header[PKT_LENGTH_BYTES] = SIDE_BAND.pack;
  return header;
}

function encodeNumber(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

class NumberReader {
  at = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** @returns undefined if there is no whole number, or one that is too large */
  next(): number | undefined {
    let value = 0;
    for (let factor = 1; factor <= Number.MAX_SAFE_INTEGER; factor *= 128) {
      const byte = this.#bytes[this.at++];
      if (byte === undefined) return undefined;
      value += (byte % 128) * factor;
      if (byte < 128) return Number.isSafeInteger(value) ? value : undefined;
    }
    return undefined;
  }
}
