import type { IncomingMessage } from "node:http";
import { isLoopbackHost, isOwnOrigin, targetFault } from "@devplat/web-kit";
import { PROBLEMS, type Problem } from "./problems/problem.ts";

/** A request body may have this many bytes (spec/agent.md section 6). */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Fault of a request on any surface: its target, or the host that it is meant for. */
export function requestFault(request: IncomingMessage): Problem | undefined {
  const fault = targetFault(request.url ?? "");
  if (fault !== undefined) return { detail: `The request was refused: ${fault}.`, code: "bad_request" };
  // RFC 9112 section 3.2; Node's own refusal would go out without our headers, and of two it takes the first.
  const hosts = request.headersDistinct["host"] ?? [];
  if (hosts.length !== 1) {
    const found = hosts.length === 0 ? "no Host" : "more than one Host";
    return { detail: `The request was refused: it has ${found}.`, code: "bad_request" };
  }
  // A foreign name that resolves to loopback (DNS rebinding) would make a foreign page same-origin with us.
  return isLoopbackHost(request.headers.host) ? undefined : PROBLEMS.hostRefused;
}

/** The path of a request without its query. */
export function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0] ?? "";
}

/** Whether a form of one of our own pages was posted: its Origin is present, and scheme, host and port are those of the Host. */
export function isFromOwnPage(request: IncomingMessage): boolean {
  return isOwnOrigin(request.headers.origin, [`http://${(request.headers.host ?? "").toLowerCase()}`]);
}

/**
 * Whether a browser says that another site's page asks. Answers could not be read there, but a stream or a CSRF token
 * replaces one of this daemon. Another port of this host is same-site, so `same-site` is foreign, too.
 */
export function isFromForeignPage(request: IncomingMessage): boolean {
  const site = request.headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  return request.headers.origin !== undefined && !isFromOwnPage(request);
}
