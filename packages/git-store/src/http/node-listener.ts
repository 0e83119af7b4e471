import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";

/**
 * Makes a listener of `node:http` from a function with web-standard requests and responses. If the client goes away, the
 * request's signal is aborted.
 */
export function toNodeListener(
  handler: (request: Request) => Promise<Response>,
): (message: IncomingMessage, response: ServerResponse) => void {
  return (message, response) => {
    void answer(handler, message, response).catch(() => response.destroy());
  };
}

async function answer(
  handler: (request: Request) => Promise<Response>,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const headers = new Headers();
  for (let at = 0; at < message.rawHeaders.length; at += 2) {
    headers.append(message.rawHeaders[at]!, message.rawHeaders[at + 1]!);
  }
  const hasBody = message.method !== "GET" && message.method !== "HEAD";
  const request = new Request(new URL(message.url ?? "/", "http://localhost"), {
    method: message.method ?? "GET",
    headers,
    signal: gone.signal,
    ...(hasBody ? { body: Readable.toWeb(message) as ReadableStream<Uint8Array>, duplex: "half" } : {}),
  });
  const made = await handler(request);
  response.writeHead(made.status, Object.fromEntries(made.headers));
  if (made.body === null) response.end();
  else await pipeline(Readable.fromWeb(made.body as NodeReadableStream<Uint8Array>), response);
}
