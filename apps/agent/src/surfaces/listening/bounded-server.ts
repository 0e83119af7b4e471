import { once } from "node:events";
import { STATUS_CODES, createServer, type Server } from "node:http";
import { systemCode } from "@devplat/base";
import { SECURITY_HEADERS } from "@devplat/web-kit";

/** Any local user can open connections; these bounds keep them from holding many for long. Milliseconds, bytes, count. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const TIMEOUT_SWEEP_MS = 1000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 256;
/** Time limit at the end for responses that have begun, in milliseconds. */
const CLOSE_GRACE_MS = 1000;

/**
 * An HTTP server with the bounds of every surface here: the web port and the sockets.
 * @param maxConnections for a caller that counts its connections itself, a bound above its own
 */
export function createBoundedServer(maxConnections = MAX_CONNECTIONS): Server {
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_SWEEP_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // Node's own refusal would lack the security headers: the surface refuses a missing Host itself.
    requireHostHeader: false,
  });
  // The same for an Expect header that Node does not know: it may be ignored (RFC 9110 section 10.1.1).
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.maxConnections = maxConnections;
  server.on("clientError", (error, socket) => {
    if (socket.writable) socket.end(unreadable(error));
  });
  return server;
}

/**
 * Accepts no more connections, and closes open ones after their responses or after the time limit.
 * @param closeStreams ends the responses that do not end by themselves
 */
export async function closeServer(server: Server, closeStreams: () => void): Promise<void> {
  const closed = once(server, "close");
  server.close();
  closeStreams();
  server.closeIdleConnections();
  const force = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
  await closed;
  clearTimeout(force);
}

/** The response to a request that could not be read. Its headers are those of every response. */
function unreadable(error: Error): string {
  const status = UNREADABLE_STATUS[systemCode(error) ?? ""] ?? 400;
  const headers = Object.entries(SECURITY_HEADERS).map(([name, value]) => `${name}: ${value}`);
  const end = ["Content-Length: 0", "Connection: close", "\r\n"];
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, ...end].join("\r\n");
}

/** Codes of Node's HTTP parser that have a status of their own. */
const UNREADABLE_STATUS: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};
