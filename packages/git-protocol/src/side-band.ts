import { ProtocolError } from "./errors.ts";
import { FLUSH_PKT, MAX_PAYLOAD_BYTES, encodePktLine } from "./pkt-line.ts";

/** Channels of side-band, the first byte of a packet (gitprotocol-pack, "Packfile Data"). */
export const SIDE_BAND = { pack: 1, progress: 2, error: 3 } as const;
/** Number of a channel of side-band. */
export type SideBandChannel = (typeof SIDE_BAND)[keyof typeof SIDE_BAND];

/** Maximum data in one side-band-64k packet, in bytes. */
export const MAX_SIDE_BAND_BYTES = MAX_PAYLOAD_BYTES - 1;

/** Channel and data of one side-band packet. */
export interface SideBandPacket {
  readonly channel: SideBandChannel;
  readonly data: Buffer;
}

/**
 * Splits the payload of a side-band packet. `data` is a view.
 *
 * @throws ProtocolError `bad_side_band` for an empty payload or a channel other than 1, 2, 3.
 */
export function decodeSideBand(payload: Buffer): SideBandPacket {
  return { channel: sideBandChannel(payload[0]), data: payload.subarray(1) };
}

/** Channel of a first byte. @throws ProtocolError `bad_side_band` */
export function sideBandChannel(byte: number | undefined): SideBandChannel {
  if (byte === 1 || byte === 2 || byte === 3) return byte;
  throw new ProtocolError("bad_side_band", "side-band: unknown channel");
}

/** Encodes data of any length as side-band-64k packets. Empty data gives no packet. */
export function encodeSideBand(channel: SideBandChannel, data: Uint8Array): Buffer {
  const packets: Buffer[] = [];
  for (let start = 0; start < data.length; start += MAX_SIDE_BAND_BYTES) {
    const part = data.subarray(start, start + MAX_SIDE_BAND_BYTES);
    const payload = Buffer.allocUnsafe(part.length + 1);
    payload[0] = channel;
    payload.set(part, 1);
    packets.push(encodePktLine(payload));
  }
  return Buffer.concat(packets);
}

/**
 * Control characters (C0, DEL, C1), format characters and the line breaks of Unicode. Newline and carriage return are
 * not among them: git expects both in progress and error text.
 */
const UNSAFE = /(?![\n\r])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/**
 * Text as git can print it. A terminal obeys escape sequences, and names that others choose can hold them. Such characters
 * are shown as in `\u{1b}`.
 */
export function messageText(text: string): string {
  return text.replace(UNSAFE, (char) => `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Packets with progress text on channel 2. */
export function encodeSideBandProgress(text: string): Buffer {
  return encodeSideBand(SIDE_BAND.progress, Buffer.from(messageText(text)));
}

/** Packets that end a packfile section with an error: the text on channel 3, then a flush-pkt. */
export function encodeSideBandError(message: string): Buffer {
  return Buffer.concat([
    encodeSideBand(SIDE_BAND.error, Buffer.from(messageText(`${message}\n`))),
    FLUSH_PKT,
  ]);
}

/** `ERR` packet that ends a message outside of a packfile section (gitprotocol-pack, "error-line"). */
export function encodeErrorLine(message: string): Buffer {
  return encodePktLine(Buffer.from(messageText(`ERR ${message}\n`)));
}
