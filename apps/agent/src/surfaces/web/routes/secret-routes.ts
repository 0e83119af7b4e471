import { Hono } from "hono";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import { storePath } from "../../../secrets/url-path.ts";
import type { Environment } from "../../http-api/environment.ts";
import { pathOf } from "../../http-api/request-checks.ts";
import { problemResponse } from "./responses.ts";
import type { RouteParts } from "./route-parts.ts";
import { SECRETS_PREFIX } from "../pages/secrets/links.ts";
import { PAGE_WAIT_MS } from "../../../secrets/page-wait.ts";
import { secretActions } from "./secret-actions.ts";
import { SecretPages } from "./secret-pages.ts";

/** Pages below /ui/secrets/. Access was checked before. */
export function secretPageRoutes(parts: RouteParts): Hono<Environment> {
  const app = new Hono<Environment>();

  app.get(`${SECRETS_PREFIX}*`, async (c) => {
    if (c.req.path === SECRETS_PREFIX.slice(0, -1)) return c.redirect(SECRETS_PREFIX, 303);
    const path = storePath(pathOf(c.env.incoming), SECRETS_PREFIX);
    if (path === undefined) return await problemResponse(c, parts, PROBLEMS.badEncoding);
    const pages = new SecretPages(parts, parts.secrets.within(PAGE_WAIT_MS));
    const part = c.req.query("part");
    if (part !== undefined) return await pages.part(c, path, part);
    const query = c.req.query("q");
    if (path === "" && query !== undefined && query.trim() !== "") return await pages.search(c, query);
    if (path === "" || path.endsWith("/")) return await pages.folder(c, path);
    return c.req.query("history") === "true" ? await pages.history(c, path) : await pages.secret(c, path);
  });
  app.post(`${SECRETS_PREFIX}*`, async (c) => {
    const secrets = parts.secrets.within(PAGE_WAIT_MS);
    return await secretActions(parts, secrets)(c);
  });
  return app;
}
