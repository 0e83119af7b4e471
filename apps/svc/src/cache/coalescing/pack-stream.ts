import { FetchResponseWalker } from "@devplat/git-protocol";
import type { FetchReader } from "./coalesced-fetch.ts";

/**
 * The bytes of the pack in a `fetch` response, without framing and progress.
 *
 * @throws ProtocolError as FetchResponseWalker; an Error when the response ends early
 */
export async function* packBytes(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let parts: Buffer[] = [];
  const walker = new FetchResponseWalker({ pack: (bytes) => void parts.push(bytes) });
  for await (const chunk of chunks) {
    walker.push(chunk);
    const ready = parts;
    parts = [];
    const [only] = ready;
    if (only !== undefined) yield ready.length === 1 ? only : Buffer.concat(ready);
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
