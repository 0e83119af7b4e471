import type { Logger } from "@devplat/base";
import type { Principal } from "../../tokens/admission.ts";
import type { Exchange } from "./exchange.ts";
import { splitTarget } from "../routing/target.ts";

/**
 * Writes one line per request: never a header of credentials, never a query, and no text that looks like one of our
 * tokens, wherever the client put it.
 */
export function logAccess(log: Logger, exchange: Exchange, options: { readonly withCache: boolean }): void {
  const { request, response } = exchange;
  log.info(
    {
      request_id: exchange.id,
      method: request.method ?? "",
      path: exchange.shown(splitTarget(request.url ?? "").path),
      status: response.headersSent ? response.statusCode : 0,
      bytes: exchange.bytes,
      duration_ms: Math.round((performance.now() - exchange.startedAt) * 100) / 100,
      complete: exchange.complete,
      remote: exchange.remoteAddress,
      principal: principalText(exchange.principal),
      ...(options.withCache ? { cache_state: exchange.cacheState, cache_repo: exchange.cacheRepo } : {}),
      user_agent: exchange.shown(request.headers["user-agent"] ?? ""),
    },
    "request",
  );
}

function principalText(principal: Principal | undefined): string {
  if (principal === undefined) return "";
  return [principal.kind, principal.login, principal.tokenId].filter((part) => part !== undefined).join(":");
}
