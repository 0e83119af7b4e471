import { PktLineReader, lineText } from "@devplat/git-protocol";
import { mediaType } from "./headers.ts";
import { withChunks, type UpstreamResponse } from "./upstream.ts";

/** Bytes of a response that are searched for an `ERR` packet: it comes first, or after the lines of a negotiation. */
const MAX_SEARCHED_BYTES = 64 * 1024;
/** Media types of responses that are made of packets. */
const PACKET_TYPES = /^application\/x-git-upload-pack-(?:advertisement|result)$/;
/** Highest first byte of a packet on a side-band (gitprotocol-pack): such a packet is part of a pack, not a line. */
const LAST_SIDE_BAND = 3;

/**
 * The same response. `onError` is called when an `ERR` packet is read from it, before the reader gets the chunk with it.
 * Responses that are not made of packets are not searched.
 */
export function watchForErrorLine(response: UpstreamResponse, onError: () => void): UpstreamResponse {
  if (response.status !== 200 || !PACKET_TYPES.test(mediaType(response.headers["content-type"])))
    return response;
  const search = new ErrorLineSearch(onError);
  const { chunks } = response;
  return withChunks(response, {
    [Symbol.asyncIterator]: () => searched(chunks[Symbol.asyncIterator](), search),
  });
}

function searched(chunks: AsyncIterator<Buffer>, search: ErrorLineSearch): AsyncIterator<Buffer> {
  const look = (next: IteratorResult<Buffer>): IteratorResult<Buffer> => {
    if (next.done !== true) search.push(next.value);
    return next;
  };
  return {
    // Once the search is over, a pack of any size costs nothing more.
    next: () => (search.isOver ? chunks.next() : chunks.next().then(look)),
    return: async () => (await chunks.return?.()) ?? { done: true, value: undefined },
  };
}

/** Looks for an `ERR` packet in the bytes of a response, up to its pack. */
class ErrorLineSearch {
  readonly #onError: () => void;
  readonly #reader = new PktLineReader();
  #size = 0;
  isOver = false;

  constructor(onError: () => void) {
    this.#onError = onError;
  }

  push(chunk: Buffer): void {
    if (this.isOver) return;
    this.#size += chunk.length;
    this.#reader.push(chunk);
    for (let next = this.#reader.next(); next.state !== "incomplete"; next = this.#reader.next()) {
      if (next.state === "error") {
        this.isOver = true;
        return;
      }
      if (next.line.kind !== "data") continue;
      const { payload } = next.line;
      const isError = payload.toString("latin1", 0, 4) === "ERR ";
      if (isError) this.#onError();
      this.isOver = isError || (payload[0] ?? Infinity) <= LAST_SIDE_BAND || lineText(payload) === "packfile";
      if (this.isOver) return;
    }
    if (this.#size > MAX_SEARCHED_BYTES) this.isOver = true;
  }
}
