import { ProtocolError } from "./errors.ts";

/** Maximum size of a pkt-line in bytes, including its length field (gitprotocol-common, "pkt-line Format"). */
export const MAX_PKT_LINE_BYTES = 65_520;
/** Size of the length field of a pkt-line, in bytes. */
export const PKT_LENGTH_BYTES = 4;
/** Maximum payload of a pkt-line, in bytes. */
export const MAX_PAYLOAD_BYTES = MAX_PKT_LINE_BYTES - PKT_LENGTH_BYTES;

/**
 * One packet (gitprotocol-common; for special packets gitprotocol-v2, "Packet-Line Framing").
 * - `data`: a payload. An empty one (`0004`) is not a flush.
 * - `flush` (`0000`): end of a message.
 * - `delim` (`0001`): separator between two sections of a v2 message.
 * - `response-end` (`0002`): end of a response on a stateless v2 connection.
 */
export type PktLine =
  | { readonly kind: "data"; readonly payload: Buffer }
  | { readonly kind: "flush" }
  | { readonly kind: "delim" }
  | { readonly kind: "response-end" };

/**
 * - `complete`: a packet and its size in bytes.
 * - `incomplete`: minimum number of further bytes to try again.
 * - `error`: the bytes are not a packet.
 */
export type PktLineDecoding =
  | { readonly state: "complete"; readonly line: PktLine; readonly size: number }
  | { readonly state: "incomplete"; readonly missing: number }
  | { readonly state: "error"; readonly error: ProtocolError };

/** Bytes of a flush-pkt. Do not write to them. */
export const FLUSH_PKT: Buffer = Buffer.from("0000");
/** Bytes of a delim-pkt. Do not write to them. */
export const DELIM_PKT: Buffer = Buffer.from("0001");
/** Bytes of a response-end-pkt. Do not write to them. */
export const RESPONSE_END_PKT: Buffer = Buffer.from("0002");

const SPECIAL: Readonly<Record<number, PktLine>> = {
  0: { kind: "flush" },
  1: { kind: "delim" },
  2: { kind: "response-end" },
};

/** Decodes the packet at `offset`. The payload is a view of `bytes`, not a copy. Never throws. */
export function decodePktLine(bytes: Buffer, offset = 0): PktLineDecoding {
  const available = bytes.length - offset;
  if (available < PKT_LENGTH_BYTES) return { state: "incomplete", missing: PKT_LENGTH_BYTES - available };
  const size = decodePktLength(bytes, offset);
  if (size instanceof ProtocolError) return { state: "error", error: size };
  const special = SPECIAL[size];
  if (special !== undefined) return { state: "complete", line: special, size: PKT_LENGTH_BYTES };
  if (available < size) return { state: "incomplete", missing: size - available };
  const payload = bytes.subarray(offset + PKT_LENGTH_BYTES, offset + size);
  return { state: "complete", line: { kind: "data", payload }, size };
}

/** Length in the four digits at `offset`: 0, 1, 2 or 4 to 65 520. Returns an error for any other digits. */
export function decodePktLength(bytes: Uint8Array, offset = 0): number | ProtocolError {
  let size = 0;
  for (let index = offset; index < offset + PKT_LENGTH_BYTES; index++) {
    const digit = hexDigit(bytes[index] ?? 0);
    if (digit < 0) {
      return new ProtocolError("bad_length", "pkt-line: the length is not four hexadecimal digits", offset);
    }
    size = size * 16 + digit;
  }
  if (size === 3) return new ProtocolError("bad_length", "pkt-line: 3 is not a length", offset);
  if (size > MAX_PKT_LINE_BYTES) {
    return new ProtocolError(
      "oversized",
      `pkt-line: ${size} bytes; the maximum is ${MAX_PKT_LINE_BYTES}`,
      offset,
    );
  }
  return size;
}

/**
 * Encodes one data packet. A string is Latin-1, one character per byte, as all text of this package.
 *
 * @throws ProtocolError `oversized` if the payload is longer than {@link MAX_PAYLOAD_BYTES}.
 */
export function encodePktLine(payload: string | Uint8Array): Buffer {
  const size = payload.length + PKT_LENGTH_BYTES;
  if (size > MAX_PKT_LINE_BYTES) {
    throw new ProtocolError("oversized", `pkt-line: ${payload.length} bytes do not fit into one packet`);
  }
  const packet = Buffer.allocUnsafe(size);
  packet.write(size.toString(16).padStart(PKT_LENGTH_BYTES, "0"), "latin1");
  if (typeof payload === "string") packet.write(payload, PKT_LENGTH_BYTES, "latin1");
  else packet.set(payload, PKT_LENGTH_BYTES);
  return packet;
}

/** Text of a packet's payload as Latin-1, without one final line feed. */
export function lineText(payload: Buffer): string {
  const end =
    payload.length > 0 && payload[payload.length - 1] === 0x0a ? payload.length - 1 : payload.length;
  return payload.toString("latin1", 0, end);
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  if (byte >= 0x61 && byte <= 0x66) return byte - 0x57;
  if (byte >= 0x41 && byte <= 0x46) return byte - 0x37;
  return -1;
}
