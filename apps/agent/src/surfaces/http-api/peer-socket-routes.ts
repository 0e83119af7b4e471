import { Hono, type MiddlewareHandler } from "hono";
import { consentBody, emptyBody } from "../forwards/remote-request.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { BodyFault, jsonBody, smallBodyLimit } from "./json-body.ts";
import { problemResponse } from "./problem-response.ts";
import { PROBLEMS } from "./problems/problem.ts";

const PEER_SOCKET = "/api/v1/peer-socket";
/**
 * The tokens that are lent over the peer socket of a hand-made forward. The status shows them.
 *
 * @param mutation checks before every change (CSRF token)
 */
export function peerSocketApiRoutes(
  { peerLoan, surface, logger }: Pick<ApiParts, "peerLoan" | "surface" | "logger">,
  mutation: MiddlewareHandler<Environment>,
): Hono<Environment> {
  const app = new Hono<Environment>();
  const limit = smallBodyLimit();

  app.post(`${PEER_SOCKET}/revoke`, limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    if (peerLoan === undefined) return problemResponse(c, PROBLEMS.noPeerSocket);
    await peerLoan.revoke();
    logger.info({ by: surface }, "tokens lent over the peer socket revoked");
    return c.body(null, 204);
  });

  app.post(`${PEER_SOCKET}/consent`, limit, mutation, async (c) => {
    const { allowed } = await jsonBody(c, consentBody);
    if (peerLoan === undefined) return problemResponse(c, PROBLEMS.noPeerSocket);
    return peerLoan.consent(allowed) ? c.body(null, 204) : problemResponse(c, PROBLEMS.noConsentWanted);
  });

  app.onError((error, c) => {
    if (error instanceof BodyFault) return problemResponse(c, error.problem);
    throw error;
  });
  return app;
}
