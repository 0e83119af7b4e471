import { Hono, type Context } from "hono";
import { AgentError } from "../../../errors.ts";
import { mountProblem } from "../../http-api/mount-routes.ts";
import type { Environment } from "../../http-api/environment.ts";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import type { MountControl } from "../../mount/mount-control.ts";
import type { Announcement } from "../pages/announcements.ts";
import { MOUNT_URL, UNMOUNT_URL } from "../pages/mount/mount-card.ts";
import { problemResponse } from "./responses.ts";
import type { RouteParts } from "./route-parts.ts";

/** The buttons of the mount's card. Access was checked before. */
export function mountRoutes(parts: RouteParts): Hono<Environment> {
  const { mount, logger } = parts;
  const app = new Hono<Environment>();

  const change = async (
    c: Context<Environment>,
    done: Announcement,
    act: (control: MountControl) => Promise<void>,
  ): Promise<Response> => {
    const control = mount();
    if (control === undefined) return await problemResponse(c, parts, PROBLEMS.mountOff);
    try {
      await act(control);
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      return await problemResponse(c, parts, mountProblem(error));
    }
    logger.info({ done, by: "page" }, "mount changed by request");
    return c.redirect(`/ui/?done=${done}`, 303);
  };

  app.post(MOUNT_URL, (c) => change(c, "mounted", (control) => control.mount()));
  app.post(UNMOUNT_URL, async (c) => {
    const lazy = new URLSearchParams(await c.req.text()).has("lazy");
    return await change(c, "unmounted", (control) => control.unmount(lazy));
  });
  return app;
}
