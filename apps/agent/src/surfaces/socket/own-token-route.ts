import { Hono } from "hono";
import type { ApiParts, Environment } from "../http-api/environment.ts";
import { headersOnly } from "../http-api/headers-only.ts";
import { problemResponse } from "../http-api/problem-response.ts";
import { PROBLEMS } from "../http-api/problem.ts";
import type { TokenHandouts } from "./token-handouts.ts";

/** `GET /api/v1/token` of a peer socket that hands the daemon's own token out. */
export function ownTokenRoute(
  { view, signIn }: Pick<ApiParts, "view" | "signIn">,
  handouts: TokenHandouts,
): Hono<Environment> {
  const app = new Hono<Environment>();
  app.get("/api/v1/token", headersOnly, (c) => {
    if (!view.status().authenticated) return problemResponse(c, PROBLEMS.notSignedIn);
    const token = signIn.token();
    if (token === undefined) return problemResponse(c, PROBLEMS.noToken);
    handouts.note();
    return c.json({ token: token.reveal(), expires_at: view.status().auth.expires_at });
  });
  return app;
}
