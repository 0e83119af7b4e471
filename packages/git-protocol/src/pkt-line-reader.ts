import { decodePktLine, type PktLineDecoding } from "./pkt-line.ts";

const EMPTY: Buffer = Buffer.alloc(0);

/**
 * Cuts a stream of bytes into packets, whatever the borders of the chunks are. Holds back at most one incomplete
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

  /** Adds bytes. The reader keeps a view of them until they are consumed. */
  push(chunk: Buffer): void {
    const rest = this.#bytes.subarray(this.#position);
    this.#bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#position = 0;
  }

  /** The next packet; `incomplete` asks for a push, `error` is final. */
  next(): PktLineDecoding {
    const decoding = decodePktLine(this.#bytes, this.#position);
    if (decoding.state === "complete") {
      this.#position += decoding.size;
      this.#consumed += decoding.size;
    }
    return decoding;
  }

  /** Bytes of all packets that were given out. */
  get consumed(): number {
    return this.#consumed;
  }

  /** Bytes that are held and belong to no packet yet. */
  get pending(): number {
    return this.#bytes.length - this.#position;
  }
}
