import type { MiddlewareHandler } from "hono";
import { matchedRoutes } from "hono/route";
import { traced, type Facts } from "../../telemetry/operation.ts";
import type { Environment } from "./environment.ts";

/** Route of a request that no handler takes. */
const NO_ROUTE = "(none)";

/**
 * Makes an operation of each request. It tells the pattern of the route, because a path can be that of a secret.
 *
 * @param surface the name of the surface, as in the log
 */
export function traceRequests(surface: string): MiddlewareHandler<Environment> {
  return async (c, next) => {
    const facts: Facts<"http.request"> = { "http.request.method": c.req.method, surface };
    await traced("http.request", facts, async () => {
      await next();
      facts["http.route"] = matchedRoutes(c).findLast(({ method }) => method !== "ALL")?.path ?? NO_ROUTE;
      facts["http.response.status_code"] = c.res.status;
    });
  };
}
