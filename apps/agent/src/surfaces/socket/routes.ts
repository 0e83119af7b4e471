import { Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { problemResponse } from "../http-api/problem-response.ts";
import { readiness } from "../http-api/health.ts";
import { peerRoutes } from "../http-api/peer-routes.ts";
import { PROBLEMS } from "../http-api/problem.ts";
import { apiRoutes } from "../http-api/routes.ts";
import { storeProblem } from "../http-api/store-problem.ts";
import type { ApiParts, Environment } from "../http-api/environment.ts";
import { MAX_BODY_BYTES } from "../http-api/request-checks.ts";
import { ACTION_KINDS } from "../../config/sections/action-kinds.ts";
import type { PeerOffer } from "../../config/sections/peer-offers.ts";
import type { TokenHandouts } from "./token-handouts.ts";

/** The API socket: the JSON API of the web port, without pages. */
export function apiSocketRoutes(parts: ApiParts): Hono<Environment> {
  const { view, logger } = parts;
  const app = new Hono<Environment>();
  app.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => problemResponse(c, PROBLEMS.bodyTooLarge) }));
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

/**
 * The peer socket, which may be forwarded to another host. It serves only the offers, because the root user
 * there can use it as well.
 */
export function peerSocketRoutes(
  parts: Pick<ApiParts, "view" | "signIn" | "actions" | "accessCheck" | "logger">,
  offers: readonly PeerOffer[],
  handouts: TokenHandouts,
): Hono<Environment> {
  const { view, signIn, logger } = parts;
  const app = new Hono<Environment>();
  if (offers.includes("token")) {
    app.get("/api/v1/token", (c) => {
      if (!view.status().authenticated) return problemResponse(c, PROBLEMS.notSignedIn);
      const token = signIn.token();
      if (token === undefined) return problemResponse(c, PROBLEMS.noToken);
      handouts.note();
      return c.json({ token: token.reveal(), expires_at: view.status().auth.expires_at });
    });
  }
  const kinds = ACTION_KINDS.filter((kind) => offers.includes(kind));
  app.route("/", peerRoutes({ ...parts, origin: () => undefined, surface: "peer socket" }, kinds));
  app.notFound((c) => problemResponse(c, PROBLEMS.notFound));
  app.onError((error, c) => {
    logger.error({ err: error, path: c.req.path }, "request failed");
    return problemResponse(c, PROBLEMS.internal);
  });
  return app;
}
