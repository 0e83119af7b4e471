import type { ServerResponse } from "node:http";

/**
 * Responds to a browser that returns from a login elsewhere, and closes the connection, because its listener stops soon.
 *
 * @param title for the browser's tab; like the text, ours, and with nothing of the request in it
 */
export function respondToCallback(
  response: ServerResponse,
  status: number,
  title: string,
  text: string,
): void {
  response.writeHead(status, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    Connection: "close",
  });
  response.end(`<!doctype html><html lang="en"><title>${title}</title><p>${text}</p></html>\n`);
}
