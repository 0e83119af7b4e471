import { html } from "@devplat/web-kit";
import type { Context } from "hono";
import { answerProblem as answerDocument, isForPrograms, problemStatus } from "../api/answer.ts";
import type { Environment } from "../api/environment.ts";
import type { Problem } from "../api/problem.ts";
import { problemPage, siteProblemPage } from "./pages/problem-page.ts";
import type { RouteParts } from "./route-parts.ts";

/** Answers with a problem: a document under /api/ and for the probes, a page elsewhere, with the site's header for whoever is in it. */
export async function answerProblem(
  c: Context<Environment>,
  parts: Pick<RouteParts, "assets" | "gate" | "view">,
  problem: Problem,
): Promise<Response> {
  if (isForPrograms(c.req.path)) return answerDocument(c, problem);
  const status = problemStatus(c, problem);
  if (isForPart(c)) return c.html(html`<span class="error">${problem.error}</span>`, status);
  if (!isInSite(c, parts, problem)) return c.html(problemPage(parts.assets, problem), status);
  const page = { path: c.req.path, shown: c.req.method !== "POST" };
  return c.html(siteProblemPage(parts.assets, parts.view.status(), problem, page), status);
}

/** Nobody whom a check of the request turned away sees anything of the site. */
function isInSite(
  c: Context<Environment>,
  { gate, view }: Pick<RouteParts, "gate" | "view">,
  { code }: Problem,
): boolean {
  if (!c.req.path.startsWith("/ui/") || code === "origin_refused") return false;
  return gate.isUnlocked(c.env.incoming) && view.status().authenticated;
}

/** Whether a page asks for a part of itself (htmx says so). */
export function isForPart(c: Context<Environment>): boolean {
  return c.req.header("HX-Request") === "true";
}
