import type { MiddlewareHandler } from "hono";
import type { Environment } from "./environment.ts";

/**
 * Responds to a HEAD request before a handler of GET that does something: uses a link up, opens a stream, hands a token out.
 * Hono gives HEAD requests to the handlers of GET, and a HEAD request must not have their effect (RFC 9110 section 9.2.1).
 */
export const headersOnly: MiddlewareHandler<Environment> = async (c, next) =>
  c.env.incoming.method === "HEAD" ? c.body(null, 200) : await next();
