import { BufferRing } from "../cache/buffer-ring.ts";
import { readAt } from "../cache/file-io.ts";
import type { FlightReader } from "../cache/flight.ts";
import type { OpenResponse } from "../cache/response-files.ts";
import type { ClientSink } from "./client-sink.ts";

/** Bytes of a kept answer that are handed to the socket at once: the client's speed is looked at between them. */
const SLICE_BYTES = 512 * 1024;

/** Sends a stored answer, from memory or else from its file. @returns the bytes sent */
export async function sendFile(file: OpenResponse, sink: ClientSink): Promise<number> {
  if (file.bytes === undefined) return sendByTurns(file, sink);
  for (let at = 0; at < file.size; at += SLICE_BYTES) {
    await sink.write(file.bytes.subarray(at, at + SLICE_BYTES));
  }
  return file.size;
}

/** One buffer is read while the other is sent. */
async function sendByTurns(file: OpenResponse, sink: ClientSink): Promise<number> {
  const ring = new BufferRing();
  let position = 0;
  try {
    while (position < file.size) {
      const buffer = await ring.take();
      const count = await readAt(file.fd, buffer, Math.min(buffer.length, file.size - position), position);
      if (count === 0) throw new Error("a stored answer became shorter");
      ring.sending(sink.writeThrough(buffer.subarray(0, count)));
      position += count;
    }
    await ring.drained();
    return position;
  } finally {
    ring.release();
  }
}

/**
 * Sends a flight's answer at the client's own speed.
 *
 * @param begin called once, before the first byte: it writes the head
 * @returns the bytes sent
 * @throws FlightCut, or the sink's error
 */
export async function sendFlight(reader: FlightReader, sink: ClientSink, begin: () => void): Promise<number> {
  const ring = new BufferRing();
  const takeBuffer = (): Promise<Buffer> => ring.take();
  let sent = 0;
  try {
    let part = await reader.read(takeBuffer);
    begin();
    while (part !== undefined) {
      if (part.kind === "read") {
        sent += part.bytes.length;
        ring.sending(sink.writeThrough(part.bytes));
      } else {
        sent += part.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
        await sink.writeAll(part.chunks);
      }
      part = await reader.read(takeBuffer);
    }
    await ring.drained();
    return sent;
  } finally {
    ring.release();
  }
}
