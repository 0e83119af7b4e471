import type { IncomingMessage } from "node:http";

/**
 * Whether a request has a body. In HTTP/1.1 its head says so (RFC 9112 section 6.3); in HTTP/2 the stream does, and clients
 * that do not know the length beforehand send no header at all.
 */
export function hasBody(request: IncomingMessage): boolean {
  const { stream } = request as { readonly stream?: { readonly endAfterHeaders?: boolean } };
  if (stream?.endAfterHeaders !== undefined) return !stream.endAfterHeaders;
  const length = request.headers["content-length"];
  return request.headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}
