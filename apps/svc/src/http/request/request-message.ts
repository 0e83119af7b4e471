import { IncomingMessage } from "node:http";

/** Pieces of a body before their size is looked at: a client may send a few short chunks. */
const FREE_PIECES = 1024;
/**
 * Mean bytes of a piece, from then on. Each piece costs some microseconds, however short it is, and one read of a
 * connection may bring ten thousand chunks of one byte. Git sends one chunk for each pkt-line of a large request: 50 bytes.
 */
const MIN_MEAN_BYTES = 16;

/**
 * A request whose connection ends when its body comes in very many tiny chunks (RFC 9112 section 7.1): they would keep
 * the event loop from all other requests. For HTTP/1.1; in HTTP/2 flow control and its own limits apply.
 */
export class RequestMessage extends IncomingMessage {
  #pieces = 0;
  #bytes = 0;

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk instanceof Uint8Array) {
      this.#pieces++;
      this.#bytes += chunk.length;
      if (this.#pieces > FREE_PIECES && this.#bytes < this.#pieces * MIN_MEAN_BYTES) {
        // The parser still has the rest of what was read: those pieces are dropped here.
        this.socket.destroy();
        return false;
      }
    }
    return super.push(chunk, encoding);
  }
}
