import { Hono } from "hono";
import { PROBLEMS } from "../../http-api/problems/problem.ts";
import type { RuleView } from "../../../status.ts";
import type { Environment } from "../../http-api/environment.ts";
import { problemResponse } from "./responses.ts";
import { endsSoon } from "./ends-soon.ts";
import type { RouteParts } from "./route-parts.ts";
import { announcementText } from "../pages/announcements.ts";
import { ruleUrl } from "../pages/rule-url.ts";
import { rulePage, rulesPage } from "../pages/rules-page.ts";

const BY_CONFIGURATION = "Not resumed: the configuration pauses this rule. Remove its paused: true there.";

/** Pages below /ui/rules/. Access was checked before. They work without scripts. */
export function ruleRoutes(parts: RouteParts): Hono<Environment> {
  const { view, assets, ruleControl, logger } = parts;
  const app = new Hono<Environment>();
  const find = (name: string): RuleView | undefined => view.rules().find((rule) => rule.name === name);

  app.get("/ui/rules", (c) => c.redirect("/ui/rules/", 303));
  app.get("/ui/rules/", (c) => c.html(rulesPage(assets, view.status(), view.rules())));

  app.get("/ui/rules/:name/", async (c) => {
    const rule = find(c.req.param("name"));
    if (rule === undefined) return await problemResponse(c, parts, PROBLEMS.noRule);
    const wanted = c.req.query("diff") === "true";
    const next = wanted ? await ruleControl.nextChange(rule.name, c.req.raw.signal) : undefined;
    const announcement = announcementText(c.req.query("done"));
    return c.html(rulePage(assets, view.status(), { rule, next, announcement }));
  });

  app.post("/ui/rules/:name/", async (c) => {
    const rule = find(c.req.param("name"));
    const action = new URLSearchParams(await c.req.text()).get("action");
    if (rule === undefined) return await problemResponse(c, parts, PROBLEMS.noRule);
    if (action === "sync") {
      const { job, done } = view.syncNow(rule.name);
      logger.info({ job, rule: rule.name, by: "page" }, "sync requested");
      const ended = await endsSoon(done);
      return c.redirect(`${ruleUrl(rule.name)}${ended ? "?done=synced" : ""}`, 303);
    }
    if (action !== "pause" && action !== "resume") return await problemResponse(c, parts, PROBLEMS.noRule);
    const outcome = await ruleControl.setPaused(rule.name, action === "pause");
    if (outcome === "unknown_rule") return await problemResponse(c, parts, PROBLEMS.noRule);
    if (outcome === "configured") {
      return c.html(rulePage(assets, view.status(), { rule, refusal: BY_CONFIGURATION }), 409);
    }
    logger.info({ rule: rule.name, by: "page" }, action === "pause" ? "rule paused" : "rule resumed");
    return c.redirect(`${ruleUrl(rule.name)}?done=${action}d`, 303);
  });
  return app;
}
