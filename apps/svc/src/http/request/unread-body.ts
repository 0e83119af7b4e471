import type { IncomingMessage } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { RequestContext } from "./request-context.ts";

/** Bytes of an unread body that are thrown away, so that the connection can go on with the next request. */
const MAX_DISCARDED_BYTES = 1024 * 1024;
/** Milliseconds that a client gets to read its answer before its unread body is cut off. */
const LINGER_MS = 2000;
/** NO_ERROR (RFC 9113 section 7). The module with the name is loaded only by a server that offers HTTP/2. */
const NO_ERROR = 0;

/**
 * Throws away the rest of a body that nobody will read. The connection goes on when the body ends soon. It is closed after
 * a short time when the body is long or slow: reading an endless body to its end would be a gift. To be called when the
 * response is written, and not before its reader has left the request.
 */
export function discardUnread({ request, response }: RequestContext): void {
  if (request.complete) return;
  const timer = setTimeout(() => cut(request), LINGER_MS);
  timer.unref();
  const stop = (): void => clearTimeout(timer);
  let size = 0;
  request.on("data", (chunk: Buffer) => {
    size += chunk.length;
    // The client reads its answer before the connection is cut.
    if (size > MAX_DISCARDED_BYTES) request.pause();
  });
  request.on("error", () => undefined);
  request.once("end", stop);
  response.socket?.once("close", stop);
}

/** Ends the connection; in HTTP/2 only the stream, as a server may when its answer is complete (RFC 9113 section 8.1). */
function cut(request: IncomingMessage): void {
  const { stream } = request as { readonly stream?: Pick<ServerHttp2Stream, "close"> };
  if (stream === undefined) request.destroy();
  else stream.close(NO_ERROR);
}
