import type { Place, QueuedWork } from "./fair-queue.ts";

/** Maximum concurrent fetches of one repository. More would ask the code host for the same objects several times. */
export const MAX_FETCHES_PER_REPOSITORY = 2;
/** Maximum heavy responses that are made at the same time. One thread makes them: more would only hold memory longer. */
export const MAX_HEAVY_RESPONSES = 4;
/** Bytes that a fetch from the code host counts for: its size is known only at its end. A common repository's. */
const FETCH_WEIGHT = 64 * 1024 * 1024;
/** Client of fetches that this service makes for itself. */
const OWN = "";

/** A fetch from the code host as work for a queue. @param client undefined: the service itself */
export function upstreamWork(group: string, client: string | undefined, first = false): QueuedWork {
  return { group, client: client ?? OWN, weight: FETCH_WEIGHT, first };
}

/** The same chunks. Their bytes count for a place. */
export async function* counted<Chunk extends Uint8Array>(
  chunks: AsyncIterable<Chunk>,
  place: Place,
): AsyncGenerator<Chunk, void, undefined> {
  for await (const chunk of chunks) {
    place.moved(chunk.length);
    yield chunk;
  }
}
