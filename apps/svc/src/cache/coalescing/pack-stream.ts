import { FetchResponseWalker } from "@devplat/git-protocol";
import type { FetchReader } from "./coalesced-fetch.ts";

/**
 * The bytes of the pack in a `fetch` response, without framing and progress. They are collected in one buffer, because a
 * new one for each chunk makes the garbage collector run all the time.
 *
 * @returns parts of the pack. A part is valid until the next one
 * @throws ProtocolError as FetchResponseWalker; an Error when the response ends early
 */
export async function* packBytes(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let target: Buffer = Buffer.alloc(0);
  let length = 0;
  const walker = new FetchResponseWalker({
    pack: (bytes) => void (length += bytes.copy(target, length)),
  });
  for await (const chunk of chunks) {
    // The pack bytes of a chunk are never more than the chunk.
    if (target.length < chunk.length) target = Buffer.allocUnsafeSlow(chunk.length);
    length = 0;
    walker.push(chunk);
    if (length > 0) yield target.subarray(0, length);
  }
  if (!walker.complete) throw new Error("the response ends before its flush-pkt");
}

/** The bytes of a running transfer from its start. The reader leaves at the end. A chunk is valid until the next one. */
export async function* fetchChunks(reader: FetchReader): AsyncGenerator<Buffer, void, undefined> {
  try {
    for (let part = await reader.read(); part !== undefined; part = await reader.read()) {
      if (part.kind === "live") {
        yield* part.chunks;
        continue;
      }
      try {
        yield part.slice.bytes;
      } finally {
        part.slice.release();
      }
    }
  } finally {
    reader.leave();
  }
}
