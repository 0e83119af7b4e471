import type { AdmissionQueue } from "./admission-queue.ts";
import type { ClientWait } from "./client-wait.ts";
import { counted } from "./places.ts";

/** The queue gave a response no place in time, and no byte of it was sent. */
export class NotAdmitted extends Error {
  constructor() {
    super("too many large responses are waiting");
  }
}

/** A response that may have to wait. */
export interface Admittable {
  /** The first chunk ends with the line that begins the pack. */
  readonly response: AsyncGenerator<Buffer, void, undefined>;
  /** Bytes of its pack, known after the first chunk; 0: it has none. */
  readonly weight: () => number;
  readonly group: string;
  readonly wait: ClientWait;
  readonly signal: AbortSignal;
}

/**
 * The chunks of a response that is made here. If its pack is heavy, it waits for a place before its second chunk, when the
 * objects to send are known. It holds the place until it is made.
 *
 * @param heavyBytes weight from which a response needs a place (`cache.heavy_mb`)
 * @throws NotAdmitted before the first chunk; the reason of the signal
 */
export async function* admitted(
  { response, weight, group, wait, signal }: Admittable,
  queue: AdmissionQueue,
  heavyBytes: () => number,
): AsyncGenerator<Buffer, void, undefined> {
  try {
    const first = await response.next();
    if (first.done === true) return;
    const bytes = weight();
    if (bytes < heavyBytes()) {
      yield first.value;
      yield* response;
      return;
    }
    // A copy: the memory of a chunk is used again when the response has been stored.
    const beginning = Buffer.from(first.value);
    const place = await queue.wait({ group, client: wait.client, weight: bytes }, wait, signal, beginning);
    if (place === "refused") throw new NotAdmitted();
    if (place === undefined) throw signal.reason;
    try {
      yield first.value;
      yield* counted(response, place);
    } finally {
      place.release();
    }
  } finally {
    await response.return(undefined);
  }
}
