import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Counts the bytes of one answer: those that its connection took since, head included. In HTTP/2 many answers share a
 * connection, so there its body's are counted, as they are written.
 *
 * @returns the bytes so far
 */
export function answerBytes(request: IncomingMessage, response: ServerResponse): () => number {
  if (request.httpVersionMajor < 2) {
    const { socket } = request;
    const before = socket.bytesWritten;
    return () => socket.bytesWritten - before;
  }
  let written = 0;
  // `end` of HTTP/2's response writes by `write`, too.
  const write = response.write.bind(response) as (...parameters: unknown[]) => boolean;
  response.write = (chunk: unknown, ...more: unknown[]): boolean => {
    written += typeof chunk === "string" ? Buffer.byteLength(chunk) : (chunk as Uint8Array).byteLength;
    return write(chunk, ...more);
  };
  return () => written;
}
