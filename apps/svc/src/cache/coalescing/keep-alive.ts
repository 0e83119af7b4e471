import { within } from "@devplat/base";
import { SIDE_BAND, decodePktLine, encodePktLine, lineText, type FetchRequest } from "@devplat/git-protocol";

/** Milliseconds between two keepalive packets while a response is prepared (as git's `uploadpack.keepAlive`). */
export const KEEP_ALIVE_MS = 5000;
/** A packet of the pack without data. */
export const KEEPALIVE = encodePktLine(Buffer.from([SIDE_BAND.pack]));
/** The line that begins the pack of a response. */
export const PACKFILE = encodePktLine("packfile\n");

/**
 * Whether the response to a request has only a packfile section. Then the section can begin before the pack is ready,
 * with empty side-band packets.
 */
export function canKeepAlive(fetch: FetchRequest): boolean {
  return (
    fetch.done &&
    fetch.wantRefs.length === 0 &&
    fetch.shallows.length === 0 &&
    fetch.deepen === undefined &&
    fetch.deepenSince === undefined &&
    fetch.deepenNots.length === 0 &&
    fetch.packfileUris === undefined &&
    !fetch.sidebandAll
  );
}

/**
 * A response with keepalive packets until it is ready.
 *
 * @param pending the response: a packfile section alone
 */
export async function* keptAlive(
  pending: Promise<AsyncIterable<Buffer>>,
  intervalMs: number,
): AsyncGenerator<Buffer, void, undefined> {
  let taken = false;
  try {
    yield PACKFILE;
    for (;;) {
      yield KEEPALIVE;
      const chunks = await within(pending, intervalMs);
      if (chunks === undefined) continue;
      taken = true;
      yield* withoutFirstLine(chunks);
      return;
    }
  } finally {
    // No reader waits for the response after this.
    if (!taken) pending.then(drop).catch(() => undefined);
  }
}

/** The chunks after the first packet, whose header has been sent. */
async function* withoutFirstLine(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  let held: Buffer | undefined = Buffer.alloc(0);
  for await (const chunk of chunks) {
    if (held === undefined) {
      yield chunk;
      continue;
    }
    held = Buffer.concat([held, chunk]);
    const first = decodePktLine(held);
    if (first.state === "incomplete") continue;
    if (first.state === "error") throw first.error;
    if (first.line.kind !== "data" || lineText(first.line.payload) !== "packfile") {
      throw new Error("the response does not begin with its pack");
    }
    const rest: Buffer = held.subarray(first.size);
    held = undefined;
    if (rest.length > 0) yield rest;
  }
}

/** Begins and ends a response that nobody reads, so that it releases its packs. */
export async function drop(chunks: AsyncIterable<Buffer>): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  await iterator.next();
  await iterator.return?.();
}
