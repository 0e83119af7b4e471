import { ProtocolError } from "./errors.ts";
import { decodePktLine, lineText, type PktLineDecoding } from "./pkt-line.ts";

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Splits a stream of bytes into packets. Chunks may end anywhere. It holds back a maximum of one incomplete
 * packet (65 519 bytes).
 *
 * @example
 * const reader = new PktLineReader();
 * reader.push(chunk);
 * for (let next = reader.next(); next.state === "complete"; next = reader.next()) use(next.line);
 */
export class PktLineReader {
  #bytes: Buffer = EMPTY;
  #position = 0;
  #consumed = 0;

  /** A reader of the same bytes that goes on by itself. */
  copy(): PktLineReader {
    const copy = new PktLineReader();
    copy.#bytes = this.#bytes;
    copy.#position = this.#position;
    copy.#consumed = this.#consumed;
    return copy;
  }

  /** Adds bytes. The reader keeps a view of them until it has returned their packets. */
  push(chunk: Buffer): void {
    const rest = this.#bytes.subarray(this.#position);
    this.#bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#position = 0;
  }

  /** Returns the next packet. `incomplete`: push more bytes first. `error`: the stream cannot be read further. */
  next(): PktLineDecoding {
    const decoding = decodePktLine(this.#bytes, this.#position);
    if (decoding.state === "complete") {
      this.#position += decoding.size;
      this.#consumed += decoding.size;
    }
    return decoding;
  }

  /** Size of all returned packets, in bytes. */
  get consumed(): number {
    return this.#consumed;
  }

  /** Size of the held bytes that are not in a returned packet. */
  get pending(): number {
    return this.#bytes.length - this.#position;
  }
  /** The held bytes that are not in a returned packet. */
  rest(): Buffer {
    return this.#bytes.subarray(this.#position);
  }
}

/**
 * Text of the next line of a complete message, or undefined at a flush-pkt.
 *
 * @param message its name, for errors
 * @throws ProtocolError `truncated`, `unexpected_packet`, or a framing error
 */
export function nextLine(reader: PktLineReader, message: string): string | undefined {
  const decoding = reader.next();
  if (decoding.state === "error") throw decoding.error;
  if (decoding.state === "incomplete") {
    throw new ProtocolError("truncated", `${message}: it ends before its flush-pkt`, reader.consumed);
  }
  if (decoding.line.kind === "flush") return undefined;
  if (decoding.line.kind === "data") return lineText(decoding.line.payload);
  throw new ProtocolError("unexpected_packet", `${message}: unexpected ${decoding.line.kind} packet`);
}
