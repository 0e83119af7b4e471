import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { shortUserAgent, type Client } from "../login/client.ts";

const MAPPED_IPV4 = /^::ffff:/;

/** Where a management request comes from. */
export function clientOf(context: Context): Client {
  const { incoming, outgoing } = context.env as HttpBindings;
  const requestId = outgoing.getHeader("x-request-id");
  return {
    address: (incoming.socket.remoteAddress ?? "").replace(MAPPED_IPV4, ""),
    userAgent: shortUserAgent(incoming.headers["user-agent"]),
    requestId: typeof requestId === "string" ? requestId : undefined,
  };
}
