import { Hono, type MiddlewareHandler } from "hono";
import { emptyBody } from "../forwards/remote-request.ts";
import { VolumeError } from "../volumes/errors/volume-error.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { BodyFault, jsonBody, smallBodyLimit } from "./json-body.ts";
import { problemResponse } from "./problem-response.ts";
import { PROBLEMS } from "./problems/problem.ts";

/**
 * Container volumes over the JSON API. Their state is part of `/api/v1/status`.
 *
 * @param mutation checks before every change (CSRF token)
 */
export function volumeRoutes(
  { volumes, surface, logger }: Pick<ApiParts, "volumes" | "surface" | "logger">,
  mutation: MiddlewareHandler<Environment>,
): Hono<Environment> {
  const app = new Hono<Environment>();
  const limit = smallBodyLimit();

  app.post("/api/v1/docker/volumes/:name/release", limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    const control = volumes();
    if (control === undefined) return problemResponse(c, PROBLEMS.volumesOff);
    const name = c.req.param("name");
    try {
      const mounts = await control.release(name);
      logger.info({ volume: name, mounts, by: surface }, "volume released");
      return c.json({ name, mounts });
    } catch (error) {
      if (!(error instanceof VolumeError)) throw error;
      if (error.code === "volume_unknown") return problemResponse(c, PROBLEMS.volumeUnknown);
      const { message, hint } = error;
      const detail = `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
      return problemResponse(c, { code: "volume_failed", detail, ...(hint !== undefined && { hint }) });
    }
  });

  app.onError((error, c) => {
    if (error instanceof BodyFault) return problemResponse(c, error.problem);
    throw error;
  });
  return app;
}
