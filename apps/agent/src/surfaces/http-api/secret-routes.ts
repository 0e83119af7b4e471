import { checkPath, printJson, type FieldValue, type Fields } from "@devplat/secret-store";
import { Hono, type Context, type MiddlewareHandler } from "hono";
import { PAGE_WAIT_MS } from "../../secrets/page-wait.ts";
import { storePath } from "../../secrets/url-path.ts";
import { problemResponse } from "./problem-response.ts";
import type { ApiParts, Environment } from "./environment.ts";
import { pathOf } from "./request-checks.ts";
import { PROBLEMS, type Problem } from "./problems/problem.ts";
import { parseIfMatch, parseSecretBody } from "./secret-body.ts";

const PREFIX = "/api/v1/secrets/";

/**
 * Secrets over the JSON API. Paths are taken exactly as they are written; a trailing slash means a folder.
 *
 * @param mutation checks that stand before every change (CSRF token)
 */
export function secretRoutes(parts: ApiParts, mutation: MiddlewareHandler<Environment>): Hono<Environment> {
  const { store, policy, logger } = parts.secrets;
  const app = new Hono<Environment>();

  app.get(`${PREFIX}*`, async (c) => {
    const path = storePath(pathOf(c.env.incoming), PREFIX);
    if (path === undefined) return problemResponse(c, PROBLEMS.badEncoding);
    const soon = store.within(PAGE_WAIT_MS);
    if (path === "" || path.endsWith("/")) return c.json({ path, keys: await soon.list(path) });
    const { version, fields } = await soon.read(path);
    const reveal = c.req.query("reveal") === "true";
    if (reveal) logger.info({ path, version, by: "api" }, "secret revealed");
    c.header("ETag", `"${version}"`);
    return json(c, 200, { path, version, fields: reveal ? fields : [...fields.keys()] });
  });

  app.post(`${PREFIX}*`, mutation, async (c) => {
    const target = writable(c);
    if ("problem" in target) return problemResponse(c, target.problem);
    const body = parseSecretBody(c.req.header("Content-Type"), await c.req.arrayBuffer());
    if ("problem" in body) return problemResponse(c, body.problem);
    const { path } = target;
    const version = await parts.secrets.create(path, body.value, "api");
    return version === undefined
      ? problemResponse(c, PROBLEMS.secretExists)
      : json(c, 201, { path, version });
  });

  app.put(`${PREFIX}*`, mutation, async (c) => {
    const target = writable(c);
    if ("problem" in target) return problemResponse(c, target.problem);
    const condition = parseIfMatch(c.req.header("If-Match"));
    if ("problem" in condition) return problemResponse(c, condition.problem);
    const body = parseSecretBody(c.req.header("Content-Type"), await c.req.arrayBuffer());
    if ("problem" in body) return problemResponse(c, body.problem);
    const { path } = target;
    // Its own read says whether there is something to replace; the write then holds only for what was read.
    const { version: stored } = await store.read(path);
    if (condition.value !== undefined && condition.value !== stored)
      return problemResponse(c, PROBLEMS.stale);
    return json(c, 200, { path, version: await parts.secrets.replace(path, body.value, stored, "api") });
  });

  app.delete(`${PREFIX}*`, mutation, async (c) => {
    const target = writable(c);
    if ("problem" in target) return problemResponse(c, target.problem);
    const condition = parseIfMatch(c.req.header("If-Match"));
    if ("problem" in condition) return problemResponse(c, condition.problem);
    const { path } = target;
    if (condition.value !== undefined && condition.value !== (await store.read(path)).version) {
      return problemResponse(c, PROBLEMS.stale);
    }
    await parts.secrets.remove(path, "api");
    return c.json({ path });
  });

  /** The path of a secret that may be changed. */
  function writable(c: Context<Environment>): { path: string } | { problem: Problem } {
    const path = storePath(pathOf(c.env.incoming), PREFIX);
    if (path === undefined) return { problem: PROBLEMS.badEncoding };
    if (path === "" || path.endsWith("/")) return { problem: PROBLEMS.folderPath };
    checkPath(path);
    const refusal = policy.refusal(path);
    if (refusal === undefined) return { path };
    return { problem: refusal === "enrolment" ? PROBLEMS.enrolmentOwned : PROBLEMS.notEditable };
  }
  return app;
}

/** Lossless, unlike Hono's own: numbers go out as the store holds them. */
function json(
  c: Context<Environment>,
  status: 200 | 201,
  document: { path: string; version: number; fields?: Fields | readonly string[] },
): Response {
  const { path, version, fields } = document;
  const entries: [string, FieldValue][] = [
    ["path", path],
    ["version", { number: String(version) }],
  ];
  if (fields !== undefined) entries.push(["fields", fields]);
  return c.body(printJson(new Map(entries)), status, { "Content-Type": "application/json" });
}
