import type { RequestContext } from "../http/request/request-context.ts";
import { SANDBOX_HEADERS } from "../http/request/text-answer.ts";

/** Milliseconds that a client gets to read a refusal before its unread body is cut off. */
const LINGER_MS = 2000;

/** Ends a request with an error in the shape of the code host's own API: clients show `message`. */
export function sendApiError(
  context: RequestContext,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const { request, response } = context;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ message, status: String(status), request_id: context.id });
  response.writeHead(status, {
    ...SANDBOX_HEADERS,
    "Cache-Control": "no-store",
    ...headers,
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    ...(request.complete || request.httpVersionMajor > 1 ? {} : { Connection: "close" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
  if (request.complete) return;
  // An endless body must not be read to its end.
  request.resume();
  request.on("error", () => undefined);
  const timer = setTimeout(() => request.destroy(), LINGER_MS);
  timer.unref();
  response.once("close", () => clearTimeout(timer));
}
