import type { Logger } from "@devplat/base";
import type { Principal } from "../tokens/admission.ts";
import type { Exchange } from "./exchange.ts";
import { splitTarget } from "./target.ts";

/** Characters of a `User-Agent` or path that are kept in a line. */
const MAX_FIELD_LENGTH = 300;

/**
 * Writes one line per request: never a header of credentials, never a query, and no text that looks like one of our
 * tokens, wherever the client put it.
 */
export function logAccess(
  log: Logger,
  exchange: Exchange,
  options: { readonly ownToken: (text: string) => boolean; readonly withCache: boolean },
): void {
  const { request, response } = exchange;
  const shown = (text: string): string =>
    options.ownToken(text) ? "(withheld)" : text.slice(0, MAX_FIELD_LENGTH);
  log.info(
    {
      request_id: exchange.id,
      method: request.method ?? "",
      path: shown(splitTarget(request.url ?? "").path),
      status: response.headersSent ? response.statusCode : 0,
      bytes: exchange.bytes,
      duration_ms: Math.round((performance.now() - exchange.startedAt) * 100) / 100,
      complete: response.writableFinished,
      remote: exchange.remoteAddress,
      principal: principalText(exchange.principal),
      ...(options.withCache ? { cache_state: exchange.cacheState, cache_repo: exchange.cacheRepo } : {}),
      user_agent: shown(request.headers["user-agent"] ?? ""),
    },
    "request",
  );
}

function principalText(principal: Principal | undefined): string {
  if (principal === undefined) return "";
  return [principal.kind, principal.login, principal.tokenId].filter((part) => part !== undefined).join(":");
}
