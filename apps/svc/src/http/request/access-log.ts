import type { Principal } from "../../identity/principal.ts";
import type { Logger } from "@devplat/base";
import type { RequestContext } from "./request-context.ts";

/**
 * Writes one line per request: never a header of credentials, never a query, and no text that looks like one of our
 * tokens, wherever the client put it.
 */
export function logAccess(
  log: Logger,
  context: RequestContext,
  options: { readonly withCache: boolean },
): void {
  const { request, response } = context;
  log.info(
    {
      request_id: context.id,
      method: request.method ?? "",
      path: context.shownPath,
      status: response.headersSent ? response.statusCode : 0,
      bytes: context.bytes,
      duration_ms: Math.round((performance.now() - context.startedAt) * 100) / 100,
      complete: context.complete,
      remote: context.remoteAddress,
      principal: principalText(context.principal),
      ...(options.withCache
        ? { cache_state: context.cacheState, cache_repo: context.cacheRepo, sent_by: context.sentBy }
        : {}),
      ...(context.refusedBy === undefined ? {} : { refused_by: context.refusedBy }),
      user_agent: context.shown(request.headers["user-agent"] ?? ""),
    },
    "request",
  );
}

function principalText(principal: Principal | undefined): string {
  if (principal === undefined) return "";
  return [principal.kind, principal.login, principal.tokenId].filter((part) => part !== undefined).join(":");
}
