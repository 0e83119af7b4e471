import { PktLineReader, lineText } from "@devplat/git-protocol";
import { mediaType } from "./headers.ts";
import { withChunks, type UpstreamAnswer } from "./upstream.ts";

/** Bytes of an answer that are searched for an `ERR` packet: it comes first, or after the lines of a negotiation. */
const MAX_SEARCHED_BYTES = 64 * 1024;
/** Media types of answers that are made of packets. */
const PACKET_TYPES = /^application\/x-git-upload-pack-(?:advertisement|result)$/;
/** Highest first byte of a packet on a side-band (gitprotocol-pack): such a packet is part of a pack, not a line. */
const LAST_SIDE_BAND = 3;

/**
 * The same answer. `onError` is called when an `ERR` packet is read from it, before the reader gets the chunk with it.
 * Answers that are not made of packets are not searched.
 */
export function watchForErrorLine(answer: UpstreamAnswer, onError: () => void): UpstreamAnswer {
  if (answer.status !== 200 || !PACKET_TYPES.test(mediaType(answer.headers["content-type"]))) return answer;
  const search = new ErrorLineSearch(onError);
  const { chunks } = answer;
  return withChunks(answer, {
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

/** Looks for an `ERR` packet in the bytes of an answer, up to its pack. */
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
