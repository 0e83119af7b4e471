import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { remoteAddressOf } from "./client-address.ts";
import { shortUserAgent, type Client } from "../../identity/client.ts";
import type { RequestFacts } from "../../identity/login/authenticator.ts";

/** Where a management request comes from. */
export function clientOf(context: Context): Client {
  const { incoming, outgoing } = context.env as HttpBindings;
  const requestId = outgoing.getHeader("x-request-id");
  return {
    address: remoteAddressOf(incoming),
    userAgent: shortUserAgent(incoming.headers["user-agent"]),
    requestId: typeof requestId === "string" ? requestId : undefined,
  };
}

/** The headers of a management request that identify its sender. */
export function requestFacts(context: Context): RequestFacts {
  return {
    method: context.req.method,
    authorization: context.req.header("authorization"),
    cookie: context.req.header("cookie"),
    origin: context.req.header("origin"),
    host: context.req.header("host"),
  };
}
