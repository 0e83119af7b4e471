import type { FlightReader } from "../cache/flight.ts";
import type { OpenResponse } from "../cache/response-files.ts";
import type { Slice } from "../cache/slices.ts";
import type { ClientSink } from "./client-sink.ts";

/** Sends a stored answer, one slice being read while the one before is on its way. @returns the bytes sent */
export async function sendFile(file: OpenResponse, sink: ClientSink): Promise<number> {
  const slices = new SliceSender(sink);
  let sent = 0;
  while (sent < file.size) {
    if (file.crowded()) await slices.sent();
    const slice = await file.slice(sent);
    sent += slice.bytes.length;
    await slices.send(slice);
  }
  await slices.sent();
  return sent;
}

/**
 * Sends a flight's answer at the client's own speed.
 *
 * @param begin called once, before the first byte: it writes the head
 * @returns the bytes sent
 * @throws FlightCut, or the sink's error
 */
export async function sendFlight(reader: FlightReader, sink: ClientSink, begin: () => void): Promise<number> {
  const slices = new SliceSender(sink);
  let sent = 0;
  let part = await reader.read();
  begin();
  while (part !== undefined) {
    if (part.kind === "stored") {
      sent += part.slice.bytes.length;
      await slices.send(part.slice);
    } else {
      sent += part.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      await slices.sent();
      await sink.writeAll(part.chunks);
    }
    part = await reader.read();
  }
  await slices.sent();
  return sent;
}

/** Slices on their way to a client, one at a time: the next one can be read meanwhile. */
class SliceSender {
  readonly #sink: ClientSink;
  #sending: Promise<void> = Promise.resolve();

  constructor(sink: ClientSink) {
    this.#sink = sink;
  }

  /** Begins to send once the slice before is sent. @throws what sending that one failed with */
  async send(slice: Slice): Promise<void> {
    try {
      await this.#sending;
    } catch (error) {
      slice.release();
      throw error;
    }
    this.#sending = this.#write(slice);
    // Whoever sends the next slice is told; until then it is nobody's failure.
    this.#sending.catch(() => undefined);
  }

  /** Resolves when all are sent. @throws what sending failed with */
  sent(): Promise<void> {
    return this.#sending;
  }

  async #write(slice: Slice): Promise<void> {
    try {
      await this.#sink.writeThrough(slice.bytes);
    } catch (error) {
      slice.abandon();
      throw error;
    }
    slice.release();
  }
}
