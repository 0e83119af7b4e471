import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import type { Logger } from "@devplat/base";
import { SECURITY_HEADERS } from "@devplat/web-kit";
import type { Hono } from "hono";
import { refuse } from "./problem-response.ts";
import type { Environment } from "./environment.ts";
import { PROBLEMS, type Problem } from "./problems/problem.ts";
import { pathOf } from "./request-checks.ts";

/**
 * Answers the requests of a surface: every answer has the security headers, and what is refused never reaches the app.
 *
 * @param refusalOf why a request gets no further, or undefined
 */
export function guardedListener(
  app: Hono<Environment>,
  refusalOf: (request: IncomingMessage) => Promise<Problem | undefined>,
  logger: Logger,
): (request: IncomingMessage, response: ServerResponse) => void {
  const next = getRequestListener(app.fetch);
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Set first, so that every response has them.
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
    try {
      const refusal = await refusalOf(request);
      if (refusal === undefined) return await next(request, response);
      return refuse(response, pathOf(request), refusal);
    } catch (error) {
      logger.error({ err: error }, "request failed");
      if (response.headersSent) response.destroy();
      else refuse(response, pathOf(request), PROBLEMS.internal);
    }
  };
  return (request, response) => void answer(request, response);
}
