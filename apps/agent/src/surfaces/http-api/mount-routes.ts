import { Hono, type Context, type MiddlewareHandler } from "hono";
import { AgentError } from "../../errors.ts";
import { emptyBody } from "../forwards/remote-request.ts";
import type { MountControl } from "../mount/mount-control.ts";
import { unmountBody } from "../mount/mount-request.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { BodyFault, jsonBody, smallBodyLimit } from "./json-body.ts";
import { PROBLEMS, type Problem } from "./problems/problem.ts";
import { problemResponse } from "./problem-response.ts";

/**
 * The filesystem mount over the JSON API. Its state is part of `/api/v1/status`.
 *
 * @param mutation checks before every change (CSRF token)
 */
export function mountRoutes(
  { mount, surface, logger }: Pick<ApiParts, "mount" | "surface" | "logger">,
  mutation: MiddlewareHandler<Environment>,
): Hono<Environment> {
  const app = new Hono<Environment>();
  const limit = smallBodyLimit();

  const change = async (
    c: Context<Environment>,
    mounted: boolean,
    act: (control: MountControl) => Promise<void>,
  ): Promise<Response> => {
    const control = mount();
    if (control === undefined) return problemResponse(c, PROBLEMS.mountOff);
    try {
      await act(control);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      return problemResponse(c, mountProblem(error));
    }
    logger.info({ mounted, by: surface }, "mount changed by request");
    return c.json({ mounted });
  };

  app.post("/api/v1/mount", limit, mutation, async (c) => {
    await jsonBody(c, emptyBody, {});
    return await change(c, true, (control) => control.mount());
  });
  app.post("/api/v1/unmount", limit, mutation, async (c) => {
    const { lazy } = await jsonBody(c, unmountBody, {});
    return await change(c, false, (control) => control.unmount(lazy));
  });

  app.onError((error, c) => {
    if (error instanceof BodyFault) return problemResponse(c, error.problem);
    throw error;
  });
  return app;
}

/** Why the mount was not changed, for the API and the pages. */
export function mountProblem({ code, message, hint }: AgentError): Problem {
  const detail = `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
  return {
    code: code === "mount_unsaved" ? code : "mount_failed",
    detail,
    ...(hint !== undefined && { hint }),
  };
}
