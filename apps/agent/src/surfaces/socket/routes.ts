import { Hono } from "hono";
import { traceRequests } from "../http-api/trace-requests.ts";
import { refuseLargeBody } from "../http-api/refuse-large-body.ts";
import { problemResponse } from "../http-api/problem-response.ts";
import { readiness } from "../http-api/status/health.ts";
import { peerRoutes } from "../http-api/peer-routes.ts";
import { PROBLEMS } from "../http-api/problems/problem.ts";
import { apiRoutes } from "../http-api/routes.ts";
import { storeProblem } from "../http-api/problems/store-problem.ts";
import type { ApiParts, Environment } from "../http-api/environment.ts";
import { MAX_BODY_BYTES } from "../http-api/request-checks.ts";
import { ACTION_KINDS } from "../../config/sections/action-kinds.ts";
import type { PeerOffer } from "../../config/sections/peer-offers.ts";

/** The API socket: the JSON API of the web port, without pages. */
export function apiSocketRoutes(parts: ApiParts): Hono<Environment> {
  const { view, logger } = parts;
  const app = new Hono<Environment>();
  app.use(traceRequests(parts.surface));
  app.use(refuseLargeBody(MAX_BODY_BYTES, (c) => problemResponse(c, PROBLEMS.bodyTooLarge)));
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", (c) => {
    const status = readiness(view.status());
    return c.json({ status }, status === "ready" ? 200 : 503);
  });
  app.route("/", apiRoutes(parts));
  app.notFound((c) => problemResponse(c, PROBLEMS.notFound));
  app.onError((error, c) => {
    const problem = storeProblem(error);
    if (problem === undefined) {
      logger.error({ err: error, path: c.req.path }, "request failed");
      return problemResponse(c, PROBLEMS.internal);
    }
    return problemResponse(c, problem);
  });
  return app;
}

/** Parts of a peer socket. */
export interface PeerSocketParts extends Pick<ApiParts, "actions" | "accessCheck" | "logger"> {
  /** Response to requests for a store token, if tokens are offered. */
  readonly tokens: Hono<Environment>;
  /** The socket, for the log. */
  readonly surface: string;
  /** Shown by `GET /healthz`, which proves where a socket leads; undefined: nothing is served there. */
  readonly nonce: string | undefined;
}

/**
 * The peer socket, which may be forwarded to another host. It serves only the offers, because the root user
 * there can use it as well.
 */
export function peerSocketRoutes(parts: PeerSocketParts, offers: readonly PeerOffer[]): Hono<Environment> {
  const { tokens, nonce, logger } = parts;
  const app = new Hono<Environment>();
  app.use(traceRequests(parts.surface));
  if (nonce !== undefined) app.get("/healthz", (c) => c.json({ status: "ok", nonce }));
  if (offers.includes("token")) app.route("/", tokens);
  const kinds = ACTION_KINDS.filter((kind) => offers.includes(kind));
  app.route("/", peerRoutes({ ...parts, origin: () => undefined }, kinds));
  app.notFound((c) => problemResponse(c, PROBLEMS.notFound));
  app.onError((error, c) => {
    logger.error({ err: error, path: c.req.path }, "request failed");
    return problemResponse(c, PROBLEMS.internal);
  });
  return app;
}
